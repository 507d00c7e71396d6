// Whether a library speaks the contract that this backend was compiled against.
#pragma once

#include <functional>
#include <string>

namespace dipu {

using SymbolLookup = std::function<void*(const char*)>;

// Empty when the library fits; otherwise the end of a sentence that begins "the vendor library <path> ...".
std::string check_abi(const SymbolLookup& symbol);

}  // namespace dipu
