// Reads the environment; the only file of the backend that does.
#include "settings.h"

#include <c10/util/Exception.h>

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

namespace dipu {
namespace {

// Remembers which variables are asked for.
class Environment {
public:
    std::string text(const char* name) {
        known_.insert(name);
        const char* value = std::getenv(name);
        return value == nullptr ? std::string() : std::string(value);
    }

    // e.g. "1" and "True" switch something on, "0", "off" and an empty text do not
    bool flag(const char* name) {
        std::string value = text(name);
        std::transform(value.begin(), value.end(), value.begin(),
                       [](unsigned char letter) { return std::tolower(letter); });
        return !value.empty() && value != "0" && value != "false" && value != "off" && value != "no";
    }

    // Those of other backends of this name, and misspelled ones, are better named than passed over.
    void report_others() const {
        std::string others;
        for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
            const std::string variable = *entry;
            const std::string name = variable.substr(0, variable.find('='));
            if (name.starts_with("DIPU_") && known_.count(name) == 0) {
                others += (others.empty() ? "" : ", ") + name;
            }
        }
        if (!others.empty()) {
            TORCH_WARN("dipu: environment variables without effect: ", others);
        }
        const std::pair<const char*, const char*> lists[] = {
            {".dipu_force_fallback_op_list.config", "DIPU_FORCE_FALLBACK_OPS_LIST"},
            {".specified_autocompare_op_list.config", "DIPU_AUTOCOMPARE_OPS_LIST"},
        };
        for (const auto& [file, variable] : lists) {
            if (access(file, F_OK) == 0) {
                TORCH_WARN("dipu: ", file, " is not read: set ", variable, " to its lines, joined by commas");
            }
        }
    }

private:
    // At first those that Python and build scripts read.
    std::set<std::string> known_ = {"DIPU_AUTOCOMPARE_FOLDER",
                                    "DIPU_LIBRARY_DIR",
                                    "DIPU_MOCK_CUDA",
                                    "DIPU_VENDOR",
                                    "DIPU_HOME",
                                    "DIPU_PATH",
                                    "DIPU_ROOT"};
};

Settings read() {
    Environment environment;
    Settings settings;
    settings.vendor_library = environment.text("DIPU_VENDOR_LIBRARY");
    settings.log_fallback = environment.flag("DIPU_LOG_FALLBACK");
    settings.log_fallback |= environment.flag("DIPU_LOG_FALLBACK_INFO");  // read in any case: each is checked
    settings.strict_fallback = environment.flag("DIPU_STRICT_FALLBACK");
    settings.force_fallback = environment.text("DIPU_FORCE_FALLBACK_OPS_LIST");
    settings.dump_level = std::atoi(environment.text("DIPU_DUMP_OP_ARGS").c_str());
    settings.dump = environment.text("DIPU_DUMP_OPS_LIST");
    settings.dump_json = environment.text("DIPU_DUMP_FORMAT") == "json";
    if (const std::string collectives = environment.text("DIPU_COLLECTIVES"); !collectives.empty()) {
        TORCH_CHECK(collectives == "device" || collectives == "host", "DIPU_COLLECTIVES is '", collectives,
                    "': set it to device or host");
        settings.collectives = collectives;
    }
    settings.compare = environment.text("DIPU_AUTOCOMPARE_OPS_LIST");
    if (const std::string action = environment.text("DIPU_AUTOCOMPARE_ON_MISMATCH"); !action.empty()) {
        settings.on_mismatch = action;
    }
    settings.check_memory = environment.flag("DIPU_MEM_CHECK");
    settings.synchronize = environment.text("DIPU_SYNCHRONIZE_OPS_LIST");
    if (environment.flag("DIPU_SYNC_EXEC_MODE")) {
        settings.synchronize = ".*";
    }
    environment.report_others();
    return settings;
}

}  // namespace

const Settings& settings() {
    static const Settings values = read();
    return values;
}

}  // namespace dipu
