"""The classes of the package simhash: its values and its documented examples, but for the import."""

import pickle
import random
import re

import pytest

from lookalike.compat import simhash as compat
from lookalike.compat.simhash import Simhash, SimhashIndex

theirs = pytest.importorskip("simhash")


def test_examples():
    def get_features(s):
        width = 3
        s = s.lower()
        s = re.sub(r"[^\w]+", "", s)
        return [s[i : i + width] for i in range(max(len(s) - width + 1, 1))]

    said = ["How are you? I am fine. Thanks.", "How are u? I am fine.     Thanks.", "How r you?I    am fine. Thanks."]
    values = [f"{Simhash(get_features(text)).value:x}" for text in said]
    assert values == [f"{theirs.Simhash(get_features(text)).value:x}" for text in said]
    assert Simhash("aa").distance(Simhash("bb")) == theirs.Simhash("aa").distance(theirs.Simhash("bb"))

    data = {
        1: "How are you? I Am fine. blar blar blar blar blar Thanks.",
        2: "How are you i am fine. blar blar blar blar blar than",
        3: "This is simhash test.",
    }
    objs = [(str(k), Simhash(get_features(v))) for k, v in data.items()]
    index = SimhashIndex(objs, k=3)
    other = theirs.SimhashIndex([(str(k), theirs.Simhash(get_features(v))) for k, v in data.items()], k=3)
    assert index.bucket_size() == other.bucket_size()
    text = "How are you i am fine. blar blar blar blar blar thank"
    s1 = Simhash(get_features(text))
    assert sorted(index.get_near_dups(s1)) == sorted(other.get_near_dups(theirs.Simhash(get_features(text))))
    index.add("4", s1)
    assert "4" in index.get_near_dups(s1)
    index.delete("4", s1)
    assert "4" not in index.get_near_dups(s1)


@pytest.mark.parametrize("f", [8, 16, 32, 64, 128])
def test_values_equal_simhash(f):
    source = random.Random(f)
    letters = "abcdefgh岛上ü ,.!"
    for length in [0, 1, 2, 3, 4, 5, 20, 300, 2000]:
        text = "".join(source.choice(letters) for _ in range(length))
        assert Simhash(text, f=f).value == theirs.Simhash(text, f=f).value, (f, text)
    words = ["".join(source.choices(letters, k=5)) for _ in range(500)]
    weights = [source.choice([1, 2, 7, 60, 0.5, 3.25]) for _ in words]
    for features in (words, list(zip(words, weights)), dict(zip(words, weights)), set(words)):
        assert Simhash(features, f=f).value == theirs.Simhash(features, f=f).value


def test_other_arguments():
    for arguments in ({"reg": r"[a-c]+"}, {"hashfunc": lambda data: sum(data) * 77777777777}, {"f": 256, "hashfunc": lambda data: (data * 40)[:32]}):
        text = "abc abd xyz abc"
        assert Simhash(text, **arguments).value == theirs.Simhash(text, **arguments).value
    assert Simhash(77).value == 77 and Simhash(Simhash(5)).value == 5
    assert Simhash("a b c d") == Simhash("a b c d")
    assert pickle.loads(pickle.dumps(Simhash("abc"))).value == Simhash("abc").value
    for wrong, error in ((3.5, TypeError), (None, TypeError)):
        with pytest.raises(error):
            Simhash(wrong)
    with pytest.raises(ValueError, match="multiple of 8"):
        Simhash("a", f=63)
    with pytest.raises(ValueError, match="64 and 32 bits"):
        Simhash("a").distance(Simhash("a", f=32))


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_index_is_exact_up_to_its_distance(k):
    source = random.Random(k)
    codes = [source.getrandbits(64) for _ in range(300)]
    for code in codes[:100]:
        for bit in source.sample(range(64), k + 1):
            code ^= 1 << bit
            codes.append(code)
    index = SimhashIndex([(str(at), Simhash(code)) for at, code in enumerate(codes)], k=k)
    other = theirs.SimhashIndex([(str(at), theirs.Simhash(code)) for at, code in enumerate(codes)], k=k)
    assert index.bucket_size() == other.bucket_size()
    for code in codes[::5]:
        near = {str(at) for at, one in enumerate(codes) if bin(one ^ code).count("1") <= k}
        assert set(index.get_near_dups(Simhash(code))) == near == set(other.get_near_dups(theirs.Simhash(code)))
    with pytest.raises(ValueError, match="32 bits, but the index has 64"):
        index.add("x", Simhash(1, f=32))


def test_weights_equal_simhash():
    for weights in ({"a": 3, "b": -1}, {"a": 1, "b": -1, "c": 2}, {"a": -2}, {"a": 60, "b": 1, "c": -3}, {"a": 2.5, "b": -1.5}):
        assert Simhash(weights).value == theirs.Simhash(weights).value
    # NumPy 2 refuses the weight there.
    assert Simhash({"a": 300, "b": 1}) == Simhash({"a": 300.0, "b": 1.0})
    with pytest.raises(ValueError, match="has 128 bits, but f is 256"):
        Simhash(["a"], f=256)


def test_subclass_with_own_tokens_works():
    def of(package):
        class Words(package.Simhash):
            def _tokenize(self, content):
                return content.split()

        return Words

    for text in ("the ferry leaves at the pier", "", "一 二 一"):
        assert of(compat)(text).value == of(theirs)(text).value
        assert Simhash(text)._tokenize(text) == theirs.Simhash(text)._tokenize(text)


def test_buckets_equal_simhash():
    objects = [(str(number), number * 0x0101_0101_0101_0101) for number in range(40)]
    ours = SimhashIndex([(key, Simhash(value)) for key, value in objects], k=3)
    others = theirs.SimhashIndex([(key, theirs.Simhash(value)) for key, value in objects], k=3)
    assert ours.bucket == others.bucket
