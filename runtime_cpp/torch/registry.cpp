// Resolves vendor functions and keeps the list of operators.
#include "registry.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "derived/derivation.h"
#include "interposer/fallback.h"
#include "interposer/forced_composites.h"
#include "generated.h"
#include "interposer/interposer.h"
#include "library.h"
#include "interposer/name_patterns.h"
#include "interposer/substitute.h"
#include "device/vendor_library.h"

namespace dipu {
namespace {

// Written while the backend starts, read only after that.
struct Operators {
    std::map<std::string, OperatorControl*> native;
    std::map<std::string, std::vector<std::string>> derived;
    std::vector<Unavailable> unavailable;
};

Operators& operators() {
    static Operators& value = *new Operators;
    return value;
}

// e.g. "add.Tensor" of "aten::add.Tensor"
std::string in_aten(const std::string& name) { return name.starts_with("aten::") ? name.substr(6) : name; }

void look_up(VendorSlot& slot) {
    if (slot.address == nullptr) {
        slot.address = vendor_symbol(slot.name);
    }
}

// The first function that the vendor library lacks, or null.
const char* first_missing(std::initializer_list<VendorSlot*> functions) {
    for (VendorSlot* slot : functions) {
        look_up(*slot);
        if (slot->address == nullptr) {
            return slot->name;
        }
    }
    return nullptr;
}

// An operator with a composite kernel prefers it over a fallback of the key, so each gets its own boxed kernel there.
void register_boxed(const char* name) {
    static torch::Library& fallback = new_library("aten", c10::DispatchKey::PrivateUse2);
    static torch::Library& interposer = new_library("aten", c10::DispatchKey::PrivateUse3);
    fallback.impl(name, torch::CppFunction::makeFromBoxedFunction<&fallback_boxed>());
    interposer.impl(name, torch::CppFunction::makeFromBoxedFunction<&interpose_boxed>());
}

}  // namespace

bool Registrar::admits(OperatorControl& control, std::initializer_list<VendorSlot*> functions) {
    if (const char* const missing = first_missing(functions)) {
        operators().unavailable.push_back({control.name, missing});
        return false;
    }
    operators().native[control.name] = &control;
    register_boxed(control.name);
    return true;
}

bool Registrar::admits_any(OperatorControl& control, std::initializer_list<VendorSlot*> functions) {
    resolve(functions);
    const auto found = std::find_if(functions.begin(), functions.end(),
                                    [](const VendorSlot* slot) { return slot->address != nullptr; });
    return found == functions.end() ? admits(control, functions) : admits(control, {*found});
}

void Registrar::resolve(std::initializer_list<VendorSlot*> functions) {
    for (VendorSlot* slot : functions) {
        look_up(*slot);
    }
}

bool Registrar::admits_derived(OperatorControl& control, const std::vector<const char*>& overloads) {
    for (const char* const overload : overloads) {
        if (operators().native.count(overload) == 0) {
            operators().unavailable.push_back({control.name, overload});
            return false;
        }
    }
    // What the vendor computes at once is better than what is made of several calls.
    if (operators().native.count(control.name) != 0) {
        return false;
    }
    operators().native[control.name] = &control;
    operators().derived[control.name].assign(overloads.begin(), overloads.end());
    register_boxed(control.name);
    return true;
}

void register_operators(torch::Library& library) {
    Registrar registrar(library);
    for (const RegisterOperators file : operator_files()) {
        file(registrar);
    }
    Derivations derivations(registrar);
    for (const DeriveOperators derive : derivation_files()) {
        derive(derivations);
    }
    // Their composite kernels would win over the fallback of the key.
    for (const char* const name : kDeviceOnly) {
        if (operators().native.count(name) == 0) {
            library.impl(name, torch::CppFunction::makeFromBoxedFunction<&fallback_boxed>());
        }
    }
}

uint8_t control_bits(const std::string& name) {
    const auto found = operators().native.find(in_aten(name));
    return found == operators().native.end() ? uint8_t{0} : found->second->bits.load(std::memory_order_relaxed);
}

bool has_wrapper(const std::string& name) { return operators().native.count(in_aten(name)) != 0; }

std::vector<std::string> set_control(const std::string& list, ControlBit bit) {
    const NamePatterns patterns(list);
    std::vector<std::string> matches;
    for (const auto& [name, control] : operators().native) {
        if (patterns.match(name)) {
            control->bits.fetch_or(bit, std::memory_order_relaxed);
            matches.push_back(name);
        } else {
            control->bits.fetch_and(static_cast<uint8_t>(~bit), std::memory_order_relaxed);
        }
    }
    if (bit == kForceFallback) {
        const auto composites = force_composites([&](const std::string& name) { return patterns.match(name); });
        matches.insert(matches.end(), composites.begin(), composites.end());
    }
    for (const std::string& text : patterns.unmatched(matches)) {
        TORCH_WARN("dipu: '", text, "' in a list of operators matches none that runs on the device");
    }
    return matches;
}

const Judgement& judgement_of(const std::string& name) {
    static const Judgement usual{};
    const auto found = operators().native.find(in_aten(name));
    return found == operators().native.end() ? usual : found->second->judgement;
}

bool writes_silently(const std::string& name, const std::string& argument) {
    static const std::set<std::pair<std::string, std::string>> writes = [] {
        std::set<std::pair<std::string, std::string>> found;
        for (const SilentWrite& write : silent_writes()) {
            found.emplace(write.overload, write.argument);
        }
        return found;
    }();
    return writes.count({in_aten(name), argument}) != 0;
}

std::vector<std::string> native_operators() {
    std::vector<std::string> names;
    for (const auto& [name, control] : operators().native) {
        names.push_back(name);
    }
    return names;
}

std::map<std::string, std::vector<std::string>> derived_operators() { return operators().derived; }

std::vector<Unavailable> unavailable_operators() { return operators().unavailable; }

}  // namespace dipu
