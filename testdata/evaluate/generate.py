"""What scikit-learn says of scored pairs and of clusters: metrics.jsonl.

    python3 -m pip install -r requirements.txt
    python3 generate.py            # --check: only compare
"""

import json
import pathlib
import random
import sys

from sklearn.metrics import precision_recall_curve, precision_recall_fscore_support
from sklearn.metrics.cluster import contingency_matrix, pair_confusion_matrix

FILE = pathlib.Path(__file__).parent / "metrics.jsonl"


def curve(draw, pairs, values, similar):
    """Pairs with scores of few or many distinct values, and the counts behind every threshold."""
    labels = [draw.random() < similar for _ in range(pairs)]
    labels[0], labels[1] = True, False
    noise = [draw.gauss(0.65 if label else 0.45, 0.2) for label in labels]
    scores = [min(max(round(score * values), 0), values) / values for score in noise]
    precision, recall, thresholds = precision_recall_curve(labels, scores)
    points = []
    for at, threshold in enumerate(thresholds):
        found = [score >= threshold for score in scores]
        _, _, f1, _ = precision_recall_fscore_support(labels, found, average="binary")
        points.append([float(threshold), float(precision[at]), float(recall[at]), float(f1)])
    return {
        "curve": {"labels": [int(label) for label in labels], "scores": scores},
        "points": points,
    }


def clusters(draw, documents, most):
    """Two clusterings and how they compare, by pairs and by B-cubed."""
    truth = [draw.randrange(most) for _ in range(documents)]
    predicted = [
        cluster if draw.random() < 0.7 else draw.randrange(most + 5) for cluster in truth
    ]
    (_, only_predicted), (only_true, both) = pair_confusion_matrix(truth, predicted) // 2
    table = contingency_matrix(truth, predicted).astype(float)
    squares = table**2
    precision = (squares / table.sum(axis=0, keepdims=True)).sum() / documents
    recall = (squares / table.sum(axis=1, keepdims=True)).sum() / documents
    same = (table == table.sum(axis=0, keepdims=True)) & (table == table.sum(axis=1, keepdims=True))
    return {
        "clusters": {"truth": truth, "predicted": predicted},
        "pairwise": [int(both), int(only_predicted), int(only_true)],
        "b_cubed": [float(precision), float(recall)],
        "exact": int((same & (table > 1)).sum()),
    }


def lines():
    draw = random.Random(7)
    for pairs, values, similar in [(2, 4, 0.5), (20, 10, 0.5), (60, 1000, 0.3), (200, 20, 0.1)]:
        yield curve(draw, pairs, values, similar)
    for documents, most in [(2, 2), (12, 4), (60, 20), (150, 140)]:
        yield clusters(draw, documents, most)


def main():
    text = "".join(json.dumps(line) + "\n" for line in lines())
    if "--check" in sys.argv[1:]:
        sys.exit(0 if FILE.read_text() == text else f"{FILE} is not what scikit-learn says")
    FILE.write_text(text)


if __name__ == "__main__":
    main()
