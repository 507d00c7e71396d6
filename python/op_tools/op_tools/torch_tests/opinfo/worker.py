"""A worker process: reads one entry and dtype a line, writes one line of JSON for each."""

import json
import os
import sys


def main() -> None:
    # What operators print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    import torch

    import torch_dipu

    torch_dipu.start()
    torch.set_num_threads(1)
    from tools.opinfo.entry import check_entry, entries

    known = entries()
    for line in sys.stdin:
        name, dtype = line.split()
        print(json.dumps(check_entry(name, known[name], getattr(torch, dtype))), file=answers, flush=True)


if __name__ == "__main__":
    main()
