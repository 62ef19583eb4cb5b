"""Natural mistakes: each is answered in one sentence that says what to type instead."""

import sys
from pathlib import Path

import pytest

from dpbandits.cli.main import main

COMMAND_LINE = [
    # Names.
    ("comprae", "Did you mean 'compare'?"),
    ("show modified-tompson", "did you mean 'modified-thompson'?"),
    ("show ucb", "did you mean"),
    ("list --problem matroid", "did you mean 'matroids'?"),
    ("reproduce ou-fig22", "did you mean 'ou-fig2'?"),
    ("compare noise-aware", "did you mean 'noise-aware-imed'?"),
    ("compare modified-thompson:prepull=3", "did you mean 'prepulls'?"),
    ("compare modified-thompson:prepulls", "modified-thompson:prepulls=…"),
    ("compare modified-thompson:prepulls=many", "expected prepulls of modified-thompson to be a number"),
    ("compare modified-thompson:prepulls=5,prepulls=6", "its prepulls twice"),
    ("compare lazy-ucb:privacy=eps=1", "write --privacy eps=1 instead"),
    ("compare lazy-ucb LazyUCB --privacy eps=1", "lazy-ucb was given twice"),
    ("audit gaussian-thompson:x=1", "no option of gaussian-thompson"),
    # Worlds.
    ("compare --env bernoulli", "did you mean 'bernoulli-arms'?"),
    ("compare --env exponential", "did you mean 'truncated-exponential-arms'?"),
    ("compare --env bernouli-arms", "did you mean 'bernoulli-arms'?"),
    ("compare --env bernoulli-arms:means=0.1", "means for at least 2 arms"),
    ("compare --env bernoulli-arms:means=.05 .04 .03", "quote a list of numbers"),
    ("compare --env bernoulli-arms:means=.9;.1", "expected means of bernoulli-arms to be a number"),
    ("compare --env bernoulli-arms:means=2,3", "expected means[0] in [0, 1]"),
    (
        "compare --env bernoulli-arms:foo=1",
        "no option of bernoulli-arms is called 'foo'; known are: means",
    ),
    ("compare --env bernoulli-arms:rates=1,2", "no option of bernoulli-arms"),
    ("compare --env sphere-contexts:dim=2.5", "expected dim of sphere-contexts to be a whole number"),
    ("compare --env fixed-actions:public=maybe", "expected public of fixed-actions to be one of 'true'"),
    ("compare --env movie-ratings", "movie-ratings needs its path"),
    ("compare --env matroid-arms:matroid=x", "can only be set in Python"),
    ("compare --env kernel-world:kernel=gauss", "no kernel is called 'gauss'"),
    ("compare --rates .1,.2", "no option is called --rates; see `dpbandits compare --help`"),
    (
        "compare lin-ucb",
        "lin-ucb cannot play on bernoulli-arms, whose problem is Arms; say --env sphere-",
    ),
    ("compare focused-matroid-ucb --env kernel-world", "say --env matroid-arms"),
    ("compare capri --privacy mu=1", "say --env kernel-world"),
    ("compare lazy-ucb --env matroid_arms --privacy eps=1", "say --env bernoulli-arms"),
    # Logs.
    ("compare --env logged-arms", "logged-arms is read from a log: write --data log.parquet"),
    ("compare --action item", "--action goes with --data"),
    ("compare --prior-rows 5", "--prior-rows goes with --data"),
    ("compare --data LOG.csv", "--data needs the names of two columns: --action item --reward click"),
    ("compare --data LOG.csv --env bernoulli-arms", "--env and --data are different worlds"),
    ("compare --data LOG.csv --action itm --reward click", "did you mean 'item'?"),
    ("compare --data LOG.csv --action item --reward stars", "outside the range 0 to 1 in 3 rows"),
    ("compare --data LOG.csv --action item --reward stars --reward-range 5", "as low,high"),
    ("compare --data LOG.csv --action item --reward click --propensity stars", "is no probability"),
    ("compare --data LOG.csv --action item --reward click --position place", "which position?"),
    ("compare --data LOG.csv --action item --reward click --position place=9", "is never '9'"),
    ("compare --data LOG.csv --action item --reward click --features stars", "--features stars=0..100"),
    (
        "compare --data LOG.csv --action item --reward click --features stars=,place=1|2",
        "what can stars",
    ),
    (
        "compare --data LOG.csv --action item --reward click --features stars=a..5",
        "expected numbers in the range of stars",
    ),
    (
        "compare --data LOG.csv --action item --reward click --features stars=1..5?9",
        "expected missing to be within 1 and 5",
    ),
    (
        "compare --data LOG.csv --action item --reward click --features stars=1..5 --prior-rows -1",
        ">= 0",
    ),
    (
        "compare --data LOG.csv --action item --reward click --prior-rows -1",
        "expected --prior-rows >= 0",
    ),
    (
        "compare lazy-ucb --data LOG.csv --action item --reward click --features stars=1..5",
        "lazy-ucb cannot play on logged-contexts, whose problem is LinearContexts; leave out --features",
    ),
    (
        "compare lin-ucb --data LOG.csv --action item --reward click",
        "say what is known of people, --features",
    ),
    (
        "compare focused-matroid-ucb --data LOG.csv --action item --reward click",
        "say --env matroid-arms instead of --data",
    ),
    (
        "compare --data LOG.csv --action item --reward stars",
        "declare the range of rewards, --reward-range low,high, by what they can be",
    ),
    ("compare --data NO.csv --action item --reward click", "there is no file NO.csv"),
    ("compare --data FILE --action item --reward click", "to end in .parquet or .csv, got FILE"),
    # Budgets.
    ("compare --privacy 1", "write eps=1 for ε-DP or mu=1 for μ-GDP"),
    ("privacy 1,1e-6", "write eps=1,delta=1e-6"),
    ("privacy epz=1", "write one of: eps=1"),
    ("privacy delta=1e-6", "write one of: eps=1"),
    ("privacy mu=1,mu=2", "write one of: eps=1"),
    ("privacy eps=0", "expected epsilon > 0"),
    ("privacy eps=nan", "expected epsilon"),
    ("privacy eps=x", "expected eps to be a number"),
    ("privacy eps=1,delta=1", "expected delta"),
    ("privacy mu=1 --delta 2", "expected delta strictly between 0 and 1"),
    ("privacy none --rounds-per-person 5", "--rounds-per-person needs a budget"),
    ("compare --privacy mu=1 --privacy mu=1", "the privacy mu=1 was given twice"),
    ("compare --privacy eps=1,2,1", "the privacy eps=1 was given twice"),
    ("compare --privacy eps=1,1e-6", "write eps=1,delta=1e-6"),
    ("compare --privacy 0.1,1,10", "write eps=0.1 for ε-DP"),
    ("compare --privacy eps=1,2,3,delta=1e-6,1e-5", "give one delta, or one for each"),
    ("compare --privacy eps=0.5,none,delta=1e-6", "give none by itself, --privacy none"),
    ("compare --privacy eps=1,two", "write some of: eps=1"),
    ("compare modified-thompson --privacy eps=1,2", "modified-thompson accepts --privacy mu=… or"),
    ("compare klucb --privacy eps=1,2", "none of these policies takes a budget"),
    ("recommend --privacy eps=1,2", "write one of: eps=1"),
    ("compare klucb --privacy eps=1", "none of these policies takes a budget"),
    ("compare modified-thompson --privacy eps=1", "modified-thompson accepts --privacy mu=… or"),
    ("compare modified-thompson --privacy eps=1", "got eps=1"),
    ("compare --privacy eps=1 --env kernel-world", "no policy for kernel-world accepts --privacy eps=1"),
    ("compare --eps 1", "write --privacy eps=1"),
    ("recommend --epsilon=1", "write --privacy eps=1"),
    ("audit lazy-ucb --mu 1", "write --privacy mu=1"),
    ("warm --delta 1e-6", "write --privacy eps=1,delta=1e-6"),
    ("privacy --eps 1", "no option is called --eps; see `dpbandits privacy --help`"),
    # Numbers.
    ("compare --rounds -5", "expected rounds"),
    ("compare --rounds 1.5", "expected rounds to be a whole number"),
    ("compare --runs few", "expected runs to be a number"),
    ("compare --threads 0", "expected threads"),
    ("compare --device tpu", "expected device to be one of"),
    ("compare --seed -1", "expected seed"),
    ("compare --delay 3", "say --in-flight too"),
    ("compare --rounds", "'--rounds' requires an argument"),
    ("recommend --horizon 1e4", "no option is called --horizon; write --rounds"),
    ("compare --people 1e4", "write --rounds"),
    ("compare --run 5", "did you mean --runs?"),
    ("recommend --rounds 0", "expected rounds"),
    ("recommend --rounds-per-person 0", "expected rounds_per_person"),
    ("recommend --rounds 1e4 --rate 1", "expected rate strictly between 0 and 1"),
    # Options that do not go together.
    ("recommend --arms 3 --items 4", "--arms does not go with --items"),
    ("recommend --features 8 --actions 20", "--actions goes with --kernel"),
    ("recommend --features 8 --items 20", "--features and --items are different problems"),
    ("recommend --rank 3", "--rank goes with --items"),
    ("recommend --items 5 --rank 9", "cannot choose 9 of 5 items"),
    ("recommend --kernel matern --contexts 0", "expected contexts"),
    ("recommend --trust joint", "this problem allows central or local trust, not joint"),
    ("recommend --trust nobody", "no trust is called 'nobody'; known are: central, joint, local"),
    ("recommend --items 5 --trust Local", "there is no local policy for items yet"),
    ("recommend --features 3 --privacy eps=1", "say --rounds 1e5"),
    ("audit lazy-ucb --runs 100", "--runs goes with --sampling"),
    ("audit lazy-ucb --sampling --rounds 9", "--rounds goes without --sampling"),
    ("audit all", "`audit all` goes with --sampling"),
    ("audit all --sampling --privacy eps=1", "leave out --privacy"),
    ("audit klucb", "nothing to audit without a privacy guarantee: KL-UCB decides"),
    # Places to write.
    ("compare --save x.csv", "expected --save to end in .parquet"),
    ("compare --report /nowhere/x.html", "there is no folder /nowhere"),
    ("compare --report FOLDER.html", "it is a folder"),
    ("compare --plot FILE/x.svg", "there is no folder"),
    ("compare --plot /proc/x.svg", "cannot write --plot /proc/x.svg: no such file or directory"),
    ("reproduce ou-fig2 --out FILE", "is not a folder"),
    ("reproduce ou-fig2 --docs FILE/docs", "is not a folder"),
    ("audit lazy-ucb --report x.html", "expected --report to end in .md"),
]


@pytest.mark.parametrize(("typed", "answer"), COMMAND_LINE)
def test_a_mistake_on_the_command_line_is_one_sentence_and_status_2(
    typed: str,
    answer: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "FOLDER.html").mkdir()
    (tmp_path / "FILE").touch()
    (tmp_path / "LOG.csv").write_text("item,click,stars,place\na,1,5,1\nb,0,3,1\na,0,2,2\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["dpbandits", *typed.split()])
    with pytest.raises(SystemExit) as stop:
        main()
    printed = capsys.readouterr()
    told = " ".join(printed.err.split())
    assert stop.value.code == 2
    assert told.startswith("error: ") and answer in told and len(told) < 400
    assert not printed.out
