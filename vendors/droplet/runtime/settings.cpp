// Reads droplet's settings from the environment.
#include "settings.h"

#include <cerrno>
#include <cstdlib>

#include "error.h"

namespace droplet {
namespace {

constexpr int64_t kMaxThreads = 256;
constexpr int64_t kMaxDevices = 16;
constexpr int64_t kMaxMemoryMegabytes = 1 << 20;

int64_t integer_setting(const char* name, int64_t fallback, int64_t least, int64_t greatest) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') return fallback;
    char* end = nullptr;
    errno = 0;
    const long long value = std::strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < least || value > greatest) {
        throw Error(tangErrorInitialization, std::string(name) + " is '" + text + "': set it to a whole number from " +
                                                 std::to_string(least) + " to " + std::to_string(greatest));
    }
    return value;
}

Settings read_settings() {
    Settings settings;
    settings.async = integer_setting("DROPLET_ASYNC", 0, 0, 1) != 0;
    settings.threads = static_cast<int32_t>(integer_setting("DROPLET_THREADS", 1, 1, kMaxThreads));
    settings.share_all = integer_setting("DROPLET_SHARE_ALL", 0, 0, 1) != 0;
    settings.devices = static_cast<int32_t>(integer_setting("DROPLET_DEVICES", 2, 1, kMaxDevices));
    settings.memory_bytes = static_cast<size_t>(integer_setting("DROPLET_MEMORY_MB", 4096, 1, kMaxMemoryMegabytes))
                            << 20;
    settings.poison = integer_setting("DROPLET_POISON", 0, 0, 1) != 0;
    if (const char* plan = std::getenv("DROPLET_FAULT")) settings.fault_plan = plan;
    return settings;
}

}  // namespace

const Settings& settings() {
    static const Settings read = read_settings();
    return read;
}

}  // namespace droplet
