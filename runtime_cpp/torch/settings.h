// Every environment variable that the backend reads, read once when it is loaded.
#pragma once

#include <string>

#include "export.h"

namespace dipu {

// Lists of operators are separated by commas; blanks are ignored: names or regular expressions, e.g. "add.out, conv.*".
struct Settings {
    // DIPU_VENDOR_LIBRARY: path of the vendor's library; libdiopi_impl.so beside libtorch_dipu.so when unset.
    std::string vendor_library;
    // DIPU_LOG_FALLBACK=1: a line on stderr the first time an operator falls back to the CPU.
    bool log_fallback = false;
    // DIPU_STRICT_FALLBACK=1: an operator that would fall back is an error that names it.
    bool strict_fallback = false;
    // DIPU_FORCE_FALLBACK_OPS_LIST: these run on the CPU.
    std::string force_fallback;
    // DIPU_DUMP_OP_ARGS: 0 nothing, 1 names of operators, 2 and their arguments, 3 and the arguments' values.
    int dump_level = 0;
    // DIPU_DUMP_OPS_LIST: only these are dumped; all when unset.
    std::string dump;
    // DIPU_DUMP_FORMAT=json: a line of JSON for each operator rather than text.
    bool dump_json = false;
    // DIPU_AUTOCOMPARE_OPS_LIST: these run on the CPU too and are compared.
    std::string compare;
    // DIPU_AUTOCOMPARE_ON_MISMATCH: log (a line on stderr), raise (an error), dump (files that replay the call).
    std::string on_mismatch = "log";
    // DIPU_MEM_CHECK=1: leaks, double frees and unknown pointers are reported, with the stacks of the allocations.
    bool check_memory = false;
    // DIPU_COLLECTIVES: device (the vendor's library, where it has one) or host (all through host memory).
    std::string collectives = "device";
    // DIPU_SYNCHRONIZE_OPS_LIST: the device is synchronized after each of these; DIPU_SYNC_EXEC_MODE=1: after all.
    std::string synchronize;
};

// The settings as the environment had them at the first call.
DIPU_API const Settings& settings();

}  // namespace dipu
