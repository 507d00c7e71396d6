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
    settings.force_fallback = text("DIPU_FORCE_FALLBACK_OPS");
    settings.dump = text("DIPU_DUMP_OPS");
    const std::string level = text("DIPU_DUMP_LEVEL");
    settings.dump_level = level.empty() ? 1 : std::atoi(level.c_str());
    settings.compare = text("DIPU_AUTOCOMPARE_OPS");
    settings.compare_raises = flag("DIPU_AUTOCOMPARE_RAISE");
    settings.synchronize = text("DIPU_SYNCHRONIZE_OPS");
    return settings;
}

}  // namespace

const Settings& settings() {
    static const Settings values = read();
    return values;
}

}  // namespace dipu
