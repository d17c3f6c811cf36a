"""Recipes with a table of forms: filled forms that say different things are kept, by every call."""

import json
import pickle

import pytest

import lookalike as la

FRAME = [
    "Only this week in all our shops, and as long as there are some left: the",
    "for no more than",
    "euros. Members of the club have a tenth off, and postage is included in the price.",
]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    place = tmp_path_factory.mktemp("forms")
    frame = ", ".join(f'"{part}"' for part in FRAME)
    (place / "forms.toml").write_text(f'lookalike_forms = 1\n[[form]]\nname = "offer"\nframe = [{frame}]\n')
    toml = la.Recipe("default").toml.replace("ngram = 2", 'ngram = 2\nforms = "forms.toml"')
    (place / "shop.toml").write_text(toml)
    return la.Recipe(place / "shop.toml")


def offer(number):
    return f"{FRAME[0]} lamp{number} {FRAME[1]} {100 + number} {FRAME[2]}"


def texts():
    offers = [offer(number) for number in range(20)]
    return offers + [f"Once more! {offers[3]}", offers[4].upper(), "Something else, of no form at all, stands here."]


def test_filled_forms_are_kept_and_repeats_removed(recipe):
    assert len(la.dedup(texts(), recipe="default", forms="off").kept) == 2
    result = la.dedup(texts(), recipe=recipe)
    assert len(result.kept) == 21
    removed = result.removed.to_pydict()
    assert [(int(a), int(b)) for a, b in zip(removed["id"], removed["kept"])] == [(21, 4), (22, 5)]
    pairs = la.pairs(texts(), recipe=recipe).pairs.to_pydict()
    assert [(int(a), int(b)) for a, b in zip(pairs["a"], pairs["b"])] == [(4, 21), (5, 22)]


def test_streams_and_comparisons_know_forms(recipe):
    stream = la.Stream(recipe=recipe)
    verdicts = [stream.insert(text, number).verdict for number, text in enumerate(texts())]
    assert [number for number, verdict in enumerate(verdicts) if verdict == "duplicate"] == [20, 21]
    apart = la.compare(offer(1), offer(2), recipe=recipe)
    assert not apart.match and "slots differ" in apart.why
    assert la.compare(offer(1), offer(1) + " Hurry.", recipe=recipe).match


def notice(day, hour):
    return (
        f"The harbour office says: on {day} the ferry to the islands leaves at {hour}.40 from the northern quay, and not "
        "from the pier at the lighthouse as usual. Tickets are sold on board, and the café opens an hour before."
    )


NOTICES = [notice(day, number % 12) for number, day in enumerate("abcdefghijkl")]


def test_forms_are_learned_and_used(tmp_path):
    assert len(la.dedup(NOTICES, forms="off").kept) < 6
    repeated = [*NOTICES, f"Read this! {NOTICES[7]}"]
    learned = la.dedup(repeated, forms="learn")
    assert la.dedup(repeated).removed.equals(learned.removed)
    assert len(learned.kept) == 12
    assert learned.summary["forms"]["forms"] == 1
    table = tmp_path / "notices.toml"
    assert la.learn_forms(repeated, table)["forms"] == 1
    rows = tmp_path / "notices.jsonl"
    rows.write_text("".join(json.dumps({"text": text}) + "\n" for text in repeated))
    from_files = tmp_path / "from-files.toml"
    assert la.learn_forms(None, from_files, source=rows)["forms"] == 1
    assert from_files.read_text() == table.read_text()
    used = la.dedup(repeated, forms=table)
    assert used.removed.to_pydict() == learned.removed.to_pydict()
    assert len(la.dedup(repeated, forms=str(table), threads=2).kept) == 12
    recipe = la.Recipe("default", forms=table)
    assert len(la.dedup(repeated, recipe=recipe).kept) == 12
    assert len(la.dedup(repeated, recipe=recipe, forms="off").kept) < 6


def test_pairs_that_forms_keep_apart_are_listed(tmp_path):
    table = tmp_path / "notices.toml"
    la.learn_forms(NOTICES, table)
    assert la.pairs(NOTICES, forms=table).pairs.num_rows == 0
    found = la.pairs(NOTICES, forms=table, apart=True)
    assert found.summary["pairs"] == 0 and found.summary["apart"] == found.pairs.num_rows > 20
    assert set(found.pairs["apart"].to_pylist()) == {"form"}
    with pytest.raises(la.SettingError, match="forms"):
        la.pairs(NOTICES, apart=True, forms="off")


def test_wrong_forms_are_refused(tmp_path):
    with pytest.raises(la.InputError, match="none.toml"):
        la.dedup(NOTICES, forms=tmp_path / "none.toml")
    with pytest.raises(la.SettingError, match="forms is 3"):
        la.dedup(NOTICES, forms=3)
    with pytest.raises(la.SettingError, match="features"):
        la.dedup({"tokens": [["a", "b"]]}, features="tokens", forms="learn")


def test_recipes_with_other_forms_are_recipes(recipe, tmp_path):
    table = str(tmp_path / "other.toml")
    frame = ", ".join(f'"{part}"' for part in FRAME)
    (tmp_path / "other.toml").write_text(f'lookalike_forms = 1\n[[form]]\nname = "other"\nframe = [{frame}]\n')
    plain, off, other = recipe.without_forms(), recipe.choose_forms("off"), la.Recipe("default").choose_forms(table)
    assert plain.form_table is None and off.form_table is None and "other" in other.form_table
    for one, kept in ((plain, 2), (off, 2), (other, 21)):
        assert type(one) is la.Recipe and pickle.loads(pickle.dumps(one)) == one
        assert len(la.dedup(texts(), recipe=one, forms=None if one is other else "off").kept) == kept
