"""Made benchmarks in two scripts, and documents of which some have items of them."""

import random

LIGHTS = [
    {
        "id": "lights-1",
        "question": "In which year did the first ferry reach the northern lighthouse on the island of Skarvoy?",
        "choices": ["1887", "1907", "1927", "1947"],
        "answer": 1,
    },
    {
        "id": "lights-2",
        "question": "Which of these harbours freezes first when the easterly wind blows in December?",
        "choices": ["Lomvik harbour", "Tarnes harbour", "Old Skarvoy harbour", "None of the harbours"],
        "answer": 2,
    },
    {"id": "lights-3", "question": "What is a ferry?", "choices": ["a boat", "a bridge", "a bird", "a bell"], "answer": 0},
]
ISLANDS = [
    {"question": "哪一座灯塔在一九零七年第一次看见渡船靠岸？", "A": "北方灯塔", "B": "南方灯塔", "C": "东海灯塔", "D": "西湖灯塔", "answer": "A"},
    {"question": "老船长清晨六点解开缆绳以后，先去了哪一个小岛？", "A": "兔子岛", "B": "月亮岛", "C": "盐岛", "D": "风岛", "answer": "C"},
]
SUMS = [
    {
        "question": "Ilse sells 14 tickets for the ferry in the morning and twice as many in the afternoon. How many tickets does "
        "Ilse sell on that day?",
        "answer": "In the afternoon she sells 14 * 2 = <<14*2=28>>28 tickets.\nIn all she sells 14 + 28 = 42.\n#### 42",
    }
]


def made_corpus():
    """Documents in two scripts, some of them with items, in English also reworded and in other case."""
    source = random.Random(7)
    words = [a + b for a in ("ka", "lo", "mi", "ren", "sta", "tu") for b in ("ba", "do", "fen", "gri", "l", "m")]
    han = "渡船七点离开岛上没有人会错过它清晨老长已经把缆绳解了"
    stories = []
    for number in range(60):
        if number % 3 == 2:
            sentences = ["".join(source.choice(han) for _ in range(20)) + "。" for _ in range(4)]
        else:
            sentences = [" ".join(source.choice(words) for _ in range(9)).capitalize() + ". " for _ in range(5)]
        stories.append(sentences)
    first, second, third = (item["question"] for item in LIGHTS)
    stories[4].insert(2, f"We ask you: {first} (A) 1887 (B) 1907 (C) 1927 (D) 1947. ")
    stories[7].insert(1, f"{second.upper()} ")
    stories[10].insert(3, first.replace("first ferry", "very first boat") + " It was 1907. ")
    stories[13].insert(0, f"{third} ")
    stories[16].insert(0, SUMS[0]["question"] + "\n" + SUMS[0]["answer"] + "\n")
    stories[22] = [second]
    stories[5].insert(1, "练习：" + ISLANDS[0]["question"] + "A. 北方灯塔 B. 南方灯塔 C. 东海灯塔 D. 西湖灯塔。")
    stories[8].insert(2, "老船長清晨六點解開纜繩以後，先去了哪一個小島？")
    return [
        {"id": f"d{number}", "text": "".join(sentences), "site": number % 4} for number, sentences in enumerate(stories)
    ]
