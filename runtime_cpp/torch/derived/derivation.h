// Operators that no function of the contract computes at once, written with operators that run on the device.
//
// A function computes the result; the functional, in-place and out= overloads of the operator all come from it. It is registered only
// if every operator that it names runs on the device itself, since a composition of fallbacks is slower than one.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "wrapper/control.h"
#include "wrapper/dtypes.h"
#include "wrapper/plain.h"
#include "wrapper/registrar.h"
#include "wrapper/status.h"
#include "wrapper/unusual.h"

namespace dipu {

// The control byte of an overload, e.g. derived_control<at::_ops::trunc_out>; named when it is registered.
template <class Overload>
inline constinit OperatorControl derived_control{nullptr};

// Whether torch lets the operator write over its first argument, as its out form for another operator does.
template <class Overload>
inline constexpr bool kTakesItself = false;

// Writes `result` to an operator's own tensor; throws c10::Error, in torch's words, where it does not fit.
DIPU_API void write_inplace(const at::Tensor& self, const at::Tensor& result);

// Writes `result` to an out= tensor; false where torch is asked whether it takes the dtype.
DIPU_API bool write_out(const at::Tensor& out, const at::Tensor& result);

// In a function that computes: leaves the call to torch's own kernel, which refuses it in its words or computes it.
struct LeftToTorch {};
inline void leave_to_torch_unless(bool taken) {
    if (!taken) {
        throw LeftToTorch{};
    }
}

namespace derived_detail {

// Complex numbers go to the CPU at once: the functions are written for real ones.
template <class Arg>
bool is_complex(const Arg& arg) {
    if constexpr (std::is_same_v<Arg, at::Tensor>) {
        return arg.defined() && arg.is_complex();
    } else {
        return false;
    }
}

template <class Arg>
bool is_fractional(const Arg& arg) {
    if constexpr (std::is_same_v<Arg, at::Tensor>) {
        return arg.defined() && !c10::isIntegralType(arg.scalar_type(), true);
    } else {
        return false;
    }
}

// What an out= overload returns: its last arguments.
template <class Return, class Tuple, std::size_t... Out>
Return returned(const Tuple& args, std::index_sequence<Out...>) {
    constexpr std::size_t kInputs = std::tuple_size_v<Tuple> - sizeof...(Out);
    if constexpr (sizeof...(Out) == 1) {
        return std::get<kInputs>(args);
    } else {
        return Return(std::get<kInputs + Out>(args)...);
    }
}

template <class Overload, auto compute, bool kFloats, class Schema = typename Overload::schema>
struct Kernel;

// A functional overload, or one that returns nothing new: the function is the kernel.
template <class Overload, auto compute, bool kFloats, class Return, class... Args>
struct Kernel<Overload, compute, kFloats, Return(Args...)> {
    static Return call(Args... args) {
        if (intercepted(derived_control<Overload>)) {
            return Overload::redispatch(kInterposer, args...);
        }
        if ((is_complex(args) || ...)) {
            refuse("complex numbers");
            return Overload::redispatch(kFallback, args...);
        }
        if (kFloats && !(is_fractional(args) || ...)) {
            ask_torch(kWholeNumbers);
            return Overload::redispatch(kFallback, args...);
        }
        if (!writes_apart(std::tuple<const std::remove_reference_t<Args>&...>(args...),
                          std::index_sequence_for<Args...>()) ||
            !(is_number(args, args...) && ...)) {
            return Overload::redispatch(kFallback, args...);
        }
        try {
            if constexpr (std::is_invocable_v<decltype(compute), Args...>) {
                return computed(args...);
            } else {
                using Outputs = std::make_index_sequence<count_outs()>;
                const auto given = std::forward_as_tuple(args...);
                if (wrote_outs(given, std::make_index_sequence<sizeof...(Args) - count_outs()>(), Outputs())) {
                    return returned<Return>(given, Outputs());
                }
            }
        } catch (const LeftToTorch&) {
            ask_torch("arguments that torch may refuse");
        } catch (const c10::Error&) {
            ask_of_failure();
        }
        return Overload::redispatch(kFallback, args...);
    }

private:
    // Whether each tensor that the operator writes lies apart from its other arguments.
    template <class Tuple, std::size_t... I>
    static bool writes_apart(const Tuple& args, std::index_sequence<I...> all) {
        return (lies_apart<I>(args, all) && ...);
    }

    template <std::size_t Place, class Tuple, std::size_t... I>
    static bool lies_apart(const Tuple& args, std::index_sequence<I...>) {
        if constexpr (std::is_same_v<std::tuple_element_t<Place, std::tuple<Args...>>, at::Tensor&>) {
            return is_apart<kTakesItself<Overload>>(std::get<Place>(args), other<Place, 0>(args)) &&
                   is_apart(std::get<Place>(args), other<Place, I == 0 ? Place : I>(args)...);
        } else {
            return true;
        }
    }

    template <std::size_t Place, std::size_t I, class Tuple>
    static const auto& other(const Tuple& args) {
        if constexpr (Place == I) {
            return std::ignore;
        } else {
            return std::get<I>(args);
        }
    }

    // Whether what is a number is one of the dtype of the first tensor.
    template <class Arg, class First, class... Others>
    static bool is_number(const Arg& arg, const First& first, const Others&... others) {
        if constexpr (!std::is_same_v<Arg, at::Scalar> && !std::is_same_v<Arg, std::optional<at::Scalar>>) {
            return true;
        } else if constexpr (std::is_same_v<First, at::Tensor>) {
            return is_number_of(first.scalar_type(), arg);
        } else if constexpr (sizeof...(Others) > 0) {
            return is_number(arg, others...);
        } else {
            return true;
        }
    }

    static Return computed(Args... args) {
        using Result = std::invoke_result_t<decltype(compute), Args...>;
        if constexpr (std::is_reference_v<Return> && !std::is_reference_v<Result>) {
            at::Tensor& self = std::get<0>(std::forward_as_tuple(args...));
            write_inplace(self, compute(args...));
            return self;
        } else {
            return compute(args...);
        }
    }

    static constexpr std::size_t count_outs() {
        if constexpr (std::is_reference_v<Return>) {
            return 1;
        } else {
            return std::tuple_size_v<Return>;
        }
    }

    // The outputs stand behind the arguments that the function takes. Torch itself says which take another dtype.
    template <class Tuple, std::size_t... In, std::size_t... Out>
    static bool wrote_outs(const Tuple& args, std::index_sequence<In...>, std::index_sequence<Out...>) {
        const auto results = compute(std::get<In>(args)...);
        if constexpr (sizeof...(Out) == 1) {
            return write_out(std::get<sizeof...(In)>(args), results);
        } else {
            return (write_out(std::get<sizeof...(In) + Out>(args), std::get<Out>(results)) && ...);
        }
    }
};

template <class Overload, auto same, class Schema = typename Overload::schema>
struct Forward;

template <class Overload, auto same, class Return, class... Args>
struct Forward<Overload, same, Return(Args...)> {
    static Return call(Args... args) {
        return intercepted(derived_control<Overload>) ? Overload::redispatch(kInterposer, args...) : same(args...);
    }
};

}  // namespace derived_detail

// Collects what one file derives: d.needs({"floor"}).add<&frac, at::_ops::frac, at::_ops::frac_, at::_ops::frac_out>();
class Derivations {
public:
    explicit Derivations(Registrar& registrar) : registrar_(&registrar) {}

    // The operators that the functions added next call, by their overloads, e.g. "where.self".
    Derivations& needs(std::initializer_list<const char*> overloads) {
        needs_ = overloads;
        return *this;
    }

    template <auto compute, class... Overloads>
    Derivations& add() {
        (register_as<Overloads>(&derived_detail::Kernel<Overloads, compute, false>::call), ...);
        return *this;
    }

    // The same of what torch has for floats alone: where all tensors hold whole numbers, it is asked.
    template <auto compute, class... Overloads>
    Derivations& floats() {
        (register_as<Overloads>(&derived_detail::Kernel<Overloads, compute, true>::call), ...);
        return *this;
    }

    // An operator that is another one with other arguments: what that refuses or leaves to the CPU, this does.
    template <auto same, class Overload>
    Derivations& forward() {
        register_as<Overload>(&derived_detail::Forward<Overload, same>::call);
        return *this;
    }

    // A kernel that calls functions of the vendor itself, of which one is enough, and looks at its control byte itself.
    template <class Overload, class Kernel>
    void bind_any(Kernel* kernel, std::initializer_list<VendorSlot*> functions) {
        OperatorControl& control = derived_control<Overload>;
        control.name = overload(Overload::name, Overload::overload_name);
        registrar_->add_any(control, kernel, functions);
    }

private:
    template <class Overload, class Kernel>
    void register_as(Kernel* kernel) {
        OperatorControl& control = derived_control<Overload>;
        control.name = overload(Overload::name, Overload::overload_name);
        registrar_->add_derived(control, kernel, needs_);
    }

    // e.g. "trunc.out"; lives until the process ends, as registrations do.
    DIPU_API static const char* overload(const char* name, const char* overload_name);

    Registrar* registrar_;
    std::vector<const char*> needs_;
};

}  // namespace dipu
