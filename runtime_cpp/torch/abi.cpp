// Compares the version of the contract that a vendor library reports with the one of this build.
#include "abi.h"

#include <diopi/diopirt.h>

#include <cstdio>

namespace dipu {

std::string check_abi(const SymbolLookup& symbol) {
    // Established vendor libraries export no version function: their operators are then checked by presence alone.
    auto* const version_text = reinterpret_cast<const char* (*)()>(symbol("diopiGetVersion"));
    if (version_text == nullptr || version_text() == nullptr) {
        return {};
    }
    int major = 0;
    int minor = 0;
    const bool read = std::sscanf(version_text(), "%*[^0-9]%d.%d", &major, &minor) == 2 ||
                      std::sscanf(version_text(), "%d.%d", &major, &minor) == 2;
    if (!read || major == DIOPI_VER_MAJOR) {
        return {};
    }
    return "was built against version " + std::to_string(major) + " of the DIOPI header, and this torch_dipu against version " +
           std::to_string(DIOPI_VER_MAJOR) + "; build both from the same sources";
}

}  // namespace dipu
