"""The established options, and what they stand for."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from diopi_conformance.cases.model_cases import model_names
from diopi_conformance.classic import Classic, ClassicError, translated
from diopi_conformance.cli import cli
from diopi_conformance.commands.classic import spelled


@pytest.fixture
def root(plan_path, tmp_path) -> Path:
    """A project with a plan and built libraries of vendor v."""
    folder = tmp_path / "root"
    (folder / "generated" / "v" / "conformance").mkdir(parents=True)
    (folder / "generated" / "v" / "conformance" / "plan.json").write_bytes(plan_path.read_bytes())
    (folder / "build" / "v" / "lib").mkdir(parents=True)
    (folder / "build" / "v" / "lib" / "libdiopi_impl.so").touch()
    return folder


BUILT = Path("build/v/lib")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "gen_data"}, "data --vendor v"),
        ({"mode": "gen_case", "fname": "neg"}, "plan --vendor v --function diopiNeg"),
        ({"fname": "diopiExp"}, "run --vendor v --function diopiExp --libraries build/v/lib"),
        ({"model_name": "resnet18"}, "run --vendor v --model resnet18 --libraries build/v/lib"),
        (
            {"filter_dtype": ("float64", "int8"), "nhwc": True, "four_bytes": True, "mode": "gen_case"},
            "plan --vendor v --skip-dtype float64 --skip-dtype int8 --nhwc --four-bytes",
        ),
        ({"html_report": True}, "run --vendor v --libraries build/v/lib --html conformance_results/v.html"),
        ({"impl_folder": Path("vendors/v")}, "run --vendor v"),
    ],
)
def test_established_options_stand_for_ours(root, options, words):
    assert translated(Classic(**{"impl_folder": BUILT, **options}), root) == words.split()


def test_data_that_was_written_is_taken(root):
    (root / "conformance_data" / "v").mkdir(parents=True)
    (root / "conformance_data" / "v" / "index.json").touch()
    assert translated(Classic(impl_folder=BUILT), root)[-2:] == ["--data", "conformance_data/v"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"impl_folder": None},
            "--impl_folder says whose library is meant, e.g. build/droplet/lib; vendors with a plan are v",
        ),
        ({"impl_folder": Path("build/w/lib")}, "'build/w/lib' names no vendor; vendors with a plan are v"),
        ({"fname": "negg"}, "there is no function 'negg'; did you mean 'neg'?"),
        ({"fname": "#"}, "there is no function '#'; 'all_ops' means all"),
    ],
)
def test_what_means_nothing_is_told(root, options, says):
    with pytest.raises(ClassicError) as error:
        translated(Classic(**{"impl_folder": BUILT, **options}), root)
    assert str(error.value) == says


def test_several_types_may_follow_one_option():
    words = ["--mode", "run_test", "--filter_dtype", "float64", "int8", "--fname", "add"]
    assert spelled(words) == [
        "--mode",
        "run_test",
        "--filter_dtype",
        "float64",
        "--filter_dtype",
        "int8",
        "--fname",
        "add",
    ]


def test_the_established_way_runs_the_command_that_it_tells(root, monkeypatch):
    monkeypatch.chdir(root)
    args = [
        "--mode=gen_case",
        "--fname",
        "neg",
        "--filter_dtype",
        "float64",
        "bfloat16",
        "--impl_folder",
        "build/v/lib",
    ]
    found = CliRunner().invoke(cli, args)
    ours = CliRunner().invoke(
        cli, ["plan", "--vendor", "v", "--op", "neg", "--skip-dtype", "f64", "--skip-dtype", "bf16"]
    )
    assert (found.exit_code, found.stdout) == (0, ours.stdout) and found.stdout
    assert "this is 'diopi-conformance plan --vendor v --function diopiNeg" in found.stderr


def test_wrong_established_usage_ends_in_a_sentence(root, monkeypatch):
    monkeypatch.chdir(root)
    found = CliRunner().invoke(cli, ["--mode", "run_test"])
    assert found.exit_code == 2 and "--impl_folder says whose library is meant" in found.output


def test_models_are_listed():
    found = CliRunner().invoke(cli, ["--get_model_list"])
    assert found.exit_code == 0 and tuple(found.stdout.split("\n")[:-1]) == model_names() != ()
