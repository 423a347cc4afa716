"""Every head at a glance: metrics and pictures from Python, by their definitions from the weights that taps keep."""

import numpy as np
import pytest

import glasshead
from glasshead import HeadStudy, Session, Taps
from model_files import FOLDER

IDS = [5, 6, 7, 11, 5, 6, 19, 5]


@pytest.fixture(scope="module")
def seen():
    session = Session(glasshead.Model(FOLDER / "llama"), rows_at_once=3)
    taps, heads = Taps("decoder.*.self.weights"), HeadStudy(cell=4, keeps_rows=True)
    session.forward(IDS[:5], taps=taps, heads=heads)
    session.forward(IDS[5:], taps=taps, heads=heads)
    return taps, heads


def test_metrics_are_what_the_weights_say(seen):
    taps, heads = seen
    n, metrics = len(IDS), heads.metrics()
    assert [(one.attention, one.layer, one.head) for one in metrics] == [
        (f"decoder.{layer}.self", layer, head) for layer in range(2) for head in range(6)
    ]
    i, j = np.indices((n, n))
    again = [row for row in range(n) if IDS[row] in IDS[:row]]
    behind = np.array([[0 < key <= row and IDS[key - 1] == IDS[row] for key in range(n)] for row in range(n)])
    for one in metrics:
        w = taps[one.attention + ".weights"][one.head].astype(np.float64)
        logs = np.log(np.where(w > 0, w, 1))
        wanted = (w[:, 0].mean(), np.diag(w, -1).mean(), np.diag(w).mean(), -(w * logs).sum(1).mean())
        wanted += ((w * abs(i - j)).sum(1).mean(), (w * behind).sum(1)[again].mean())
        np.testing.assert_allclose(one[3:], wanted, rtol=0, atol=200 * n * 2**-24)


def test_pictures_and_blocks_are_those_of_the_weights(seen):
    taps, heads = seen
    maps = heads.maps()
    assert list(maps) == [f"decoder.{n}.self.{kind}_map" for n in range(2) for kind in ("mean", "max")]
    for layer in range(2):
        w = taps[f"decoder.{layer}.self.weights"]
        cells = w.reshape(6, 2, 4, 2, 4)
        np.testing.assert_allclose(maps[f"decoder.{layer}.self.mean_map"], cells.mean((2, 4)), rtol=0, atol=2e-5)
        np.testing.assert_allclose(maps[f"decoder.{layer}.self.max_map"], cells.max((2, 4)), rtol=0, atol=2e-5)
        block = heads.weights(f"decoder.{layer}.self", 3, queries=(2, 8), keys=(0, 5))
        assert np.array_equal(block, w[3, 2:8, :5])
    assert heads.bytes > 0 and "12 heads" in repr(heads)


def test_a_study_of_writing_is_that_of_reading_the_whole_text():
    model = glasshead.Model(FOLDER / "llama")
    writing, reading = Session(model), Session(model)
    written, whole = HeadStudy(cell=4, keeps_rows=True), HeadStudy(cell=4, keeps_rows=True)
    ids = writing.generate(IDS, max_tokens=7, stops_at_eos=False, heads=written).ids
    assert len(ids) == 7 and writing.length() == len(IDS) + 6  # nothing asked for what follows the last one
    reading.forward(IDS + ids[:-1], rows="none", heads=whole)
    np.testing.assert_array_equal(written.metrics(), whole.metrics())
    for name, picture in whole.maps().items():
        assert picture.shape == (6, 4, 4) and np.array_equal(written.maps()[name], picture)
    rows = written.rows("decoder.1.self")
    assert rows.shape == (6, 14, 6) and rows.dtype == np.float64
    np.testing.assert_array_equal(rows, whole.rows("decoder.1.self"))
    metrics = [one[3:] for one in written.metrics() if one.layer == 1]
    np.testing.assert_allclose(np.nanmean(rows, axis=1), metrics, rtol=1e-12)
    # One token at a time: each is one more row.
    stream = Session(model)
    seen = HeadStudy(keeps_rows=True)
    for n, _ in enumerate(stream.stream(IDS, max_tokens=3, heads=seen)):
        assert seen.rows("decoder.0.self").shape[1] == len(IDS) + n


def test_what_a_study_cannot_do_is_told():
    session = Session(glasshead.Model(FOLDER / "llama"))
    for call, where in [
        (lambda: HeadStudy(cell="x"), "cell"),
        (lambda: session.forward(IDS, heads=Taps()), "heads"),
        (lambda: session.generate(IDS, heads=Taps()), "heads"),
        (lambda: HeadStudy().rows(3), "attention"),
        (lambda: HeadStudy().weights("decoder.0.self", 0, queries=3, keys=(0, 1)), "queries"),
    ]:
        with pytest.raises(glasshead.OptionError) as refused:
            call()
        assert [problem.where for problem in refused.value.problems] == [where]
    study = HeadStudy()
    session.forward(IDS, heads=study)
    with pytest.raises(glasshead.OptionError):
        study.weights("decoder.0.self", 0, queries=(0, 1), keys=(0, 1))  # its rows were not kept
    with pytest.raises(glasshead.OptionError, match="keeps_rows"):
        study.rows("decoder.0.self")
    session.truncate(0)
    with pytest.raises(glasshead.OptionError):
        session.forward(IDS, heads=study)  # does not go on where the study ended
