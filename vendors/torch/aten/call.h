// What the contract's parameters are to ATen: handles as tensors over the same memory, pointers as optionals, results
// written where the caller wants them.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/List.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/util/OptionalArrayRef.h>
#include <c10/util/string_view.h>
#include <diopi/diopirt.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "aten/guarded.h"

namespace diopi::aten {

at::ScalarType scalar_type(diopiDtype_t dtype);
at::ScalarType scalar_type(diopiConstTensorHandle_t handle);
diopiDtype_t dtype_of(at::ScalarType type);

// -- arguments ----------------------------------------------------------------------------------------------------

// A tensor over the handle's memory, with its sizes, strides and dtype. Throws for a null handle.
at::Tensor tensor(diopiConstTensorHandle_t handle);
// The tensor in the element type of `out`.
at::Tensor raised(diopiConstTensorHandle_t handle, diopiConstTensorHandle_t out);
std::optional<at::Tensor> maybe_tensor(diopiConstTensorHandle_t handle);

// Whether both have as many dimensions: an output of a reduction then keeps those that were reduced.
bool same_rank(diopiConstTensorHandle_t one, diopiConstTensorHandle_t other);

std::vector<at::Tensor> tensors(const diopiConstTensorHandle_t* handles, int64_t count);
std::vector<at::Tensor> tensors(const diopiTensorHandle_t* handles, int64_t count);
c10::List<std::optional<at::Tensor>> maybe_tensors(const diopiConstTensorHandle_t* handles, int64_t count);

at::Scalar number(const diopiScalar_t& scalar);
at::Scalar number(const diopiScalar_t* scalar);  // throws for a null pointer
std::optional<at::Scalar> maybe_number(const diopiScalar_t* scalar);
// A number that takes part in type promotion as a number, not as a tensor.
at::Tensor number_tensor(const diopiScalar_t* scalar);

inline at::IntArrayRef ints(diopiSize_t size) { return {size.data, static_cast<size_t>(size.len)}; }
inline at::IntArrayRef ints(const diopiSize_t* size) { return size == nullptr ? at::IntArrayRef() : ints(*size); }
at::OptionalIntArrayRef maybe_ints(const diopiSize_t* size);
inline at::SymIntArrayRef symints(at::IntArrayRef values) { return c10::fromIntArrayRefSlow(values); }
inline at::SymIntArrayRef symints(diopiSize_t size) { return symints(ints(size)); }
inline at::SymIntArrayRef symints(const diopiSize_t* size) { return symints(ints(size)); }
at::OptionalSymIntArrayRef maybe_symints(const diopiSize_t* size);

template <class T>
std::optional<T> maybe(const T* value) {
    return value == nullptr ? std::nullopt : std::optional<T>(*value);
}

inline std::string_view text(const char* value) { return value == nullptr ? "" : value; }  // empty for null
// A text that may be absent: null and "none" stand for that.
std::optional<std::string_view> maybe_text(const char* text);
std::optional<std::string_view> rounding(diopiRoundMode_t mode);
at::MemoryFormat format(diopiMemoryFormat_t format);

// A generator of the host that starts where the handle's stands, and moves that on. Null: the host's own.
std::optional<at::Generator> generator(diopiGeneratorHandle_t handle);
// The one that the last call of generator() gave: for a gradient that draws what its forward drew.
std::optional<at::Generator> generator_again(diopiGeneratorHandle_t handle);

// -- results ------------------------------------------------------------------------------------------------------

// A tensor over the handle's memory where an operator asks for one to write.
class Into {
public:
    explicit Into(at::Tensor tensor) : tensor_(std::move(tensor)) {}
    operator at::Tensor&() { return tensor_; }

private:
    at::Tensor tensor_;
};
Into into(diopiTensorHandle_t handle);

// Copies `value` into the handle's memory, converting its elements; does nothing for a null handle.
void write(diopiTensorHandle_t out, const at::Tensor& value);
void write(const diopiTensorHandle_t* outs, int64_t count, at::TensorList values);

// Gives the caller a tensor of the context that holds `value`, in its order of memory if that has no gaps; does nothing
// for a null pointer.
void allocate(diopiContextHandle_t ctx, diopiTensorHandle_t* out, const at::Tensor& value);

}  // namespace diopi::aten
