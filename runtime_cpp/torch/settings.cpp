// Reads the environment; the only file of the backend that does.
#include "settings.h"

#include <cstdlib>

namespace dipu {
namespace {

std::string text(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

bool flag(const char* name) {
    const std::string value = text(name);
    return !value.empty() && value != "0";
}

Settings read() {
    Settings settings;
    settings.vendor_library = text("DIPU_VENDOR_LIBRARY");
    settings.log_fallback = flag("DIPU_LOG_FALLBACK");
    settings.strict_fallback = flag("DIPU_STRICT_FALLBACK");
    settings.force_fallback = text("DIPU_FORCE_FALLBACK_OPS_LIST");
    settings.dump_level = std::atoi(text("DIPU_DUMP_OP_ARGS").c_str());
    settings.dump = text("DIPU_DUMP_OPS_LIST");
    settings.dump_json = text("DIPU_DUMP_FORMAT") == "json";
    settings.compare = text("DIPU_AUTOCOMPARE_OPS_LIST");
    if (const std::string action = text("DIPU_AUTOCOMPARE_ON_MISMATCH"); !action.empty()) {
        settings.on_mismatch = action;
    }
    settings.check_memory = flag("DIPU_MEM_CHECK");
    settings.synchronize = text("DIPU_SYNCHRONIZE_OPS_LIST");
    return settings;
}

}  // namespace

const Settings& settings() {
    static const Settings values = read();
    return values;
}

}  // namespace dipu
