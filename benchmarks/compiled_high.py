"""What float32 training steps take on a GPU, with TF32 allowed and without, where compilers kept their caches."""

from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryDirectory

from compiled import COLUMNS, add_columns, lines_of
from figures import Report
from setting import Setting

ABOUT = (
    "float32 training steps on a GPU, with TF32 but where all digits are named, and of two models that nothing was written for; "
    "compilers find what they kept; the peers are CUDA eager, inductor and its graphs"
)
KINDS = (("high",), ("high", "--untuned"))
EAGER = (*KINDS, ("f32",))


def measure(setting: Setting) -> Report:
    """Fills the caches by all columns at once, then runs compiled_gpu_times.py for one after the other."""
    report = Report("compiled_high_cuda", ABOUT)
    columns = [column for column in COLUMNS if column != ("dipu", "diopi")]
    with TemporaryDirectory() as kept:

        def lines(column: tuple[str, str]) -> list[str]:
            kinds = EAGER if column[1] == "eager" else KINDS
            return [line for kind in kinds for line in lines_of(setting, kept, *column, "--dtype", *kind)]

        with ThreadPoolExecutor(len(columns)) as pool:
            list(pool.map(lines, [column for column in columns if column[1] != "eager"]))
        add_columns(report, ((column, lines(column)) for column in columns), "1.05", "0.5")
    return report
