"""What float32 training steps take on a GPU, with TF32 allowed and without, beside eager, inductor and its graphs."""

from tempfile import TemporaryDirectory

from compiled import COLUMNS, add_columns, lines_of
from figures import Report
from setting import Setting

ABOUT = (
    "float32 training steps on a GPU, with TF32 but where all digits are named, and of two models that nothing was "
    "written for; the peers are CUDA eager, inductor and its graphs"
)
KINDS = (("MLP", "ResNet", "LLaMA", "ViT", "GPT-2", "--dtype", "high"), ("--untuned", "--dtype", "high"))
OF_EAGER = (*KINDS, (*KINDS[0][:-1], "f32"))


def measure(setting: Setting) -> Report:
    """Runs compiled_gpu_times.py for one column after the other."""
    report = Report("compiled_high_cuda", ABOUT)
    with TemporaryDirectory() as kept:

        def lines(device: str, mode: str) -> list[str]:
            kinds = OF_EAGER if mode == "eager" else KINDS
            return [line for kind in kinds for line in lines_of(setting, kept, device, mode, *kind)]

        columns = [column for column in COLUMNS if column != ("dipu", "diopi")]
        add_columns(report, ((column, lines(*column)) for column in columns), target="1.05")
    return report
