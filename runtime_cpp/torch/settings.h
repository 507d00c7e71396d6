// Every environment variable that the backend reads, read once when it is loaded.
#pragma once

#include <string>

#include "export.h"

namespace dipu {

struct Settings {
    // DIPU_VENDOR_LIBRARY: path of the vendor's library; libdiopi_impl.so beside libtorch_dipu.so when unset.
    std::string vendor_library;
    // DIPU_LOG_FALLBACK=1: a line on stderr the first time an operator falls back to the CPU.
    bool log_fallback = false;
    // DIPU_STRICT_FALLBACK=1: an operator that would fall back is an error that names it.
    bool strict_fallback = false;
    // DIPU_FORCE_FALLBACK_OPS: a regular expression; matching overloads (ex: "add\..*") run on the CPU.
    std::string force_fallback;
    // DIPU_DUMP_OPS and DIPU_DUMP_LEVEL: matching overloads print their arguments; 1 shapes, 2 statistics, 3 values.
    std::string dump;
    int dump_level = 1;
    // DIPU_AUTOCOMPARE_OPS: matching overloads run on the CPU too and are compared.
    std::string compare;
    // DIPU_AUTOCOMPARE_RAISE=1: a difference is an error, not only a line in the report.
    bool compare_raises = false;
    // DIPU_SYNCHRONIZE_OPS: the device is synchronized after each matching overload.
    std::string synchronize;
};

// The settings as the environment had them at the first call.
DIPU_API const Settings& settings();

}  // namespace dipu
