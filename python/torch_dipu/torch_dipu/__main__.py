"""``python -m torch_dipu``: where C++ programs find this package."""

import argparse
import sys

from torch_dipu._client_environment import client_exports


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torch_dipu", description=__doc__)
    parser.add_argument(
        "--client-environment",
        action="store_true",
        required=True,
        help="print, as lines for a shell, the variables that C++ programs written for DIPU are built with",
    )
    parser.parse_args()
    try:
        print(client_exports())
    except ImportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
