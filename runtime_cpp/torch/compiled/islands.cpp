// Islands: operators of the framework in the middle of a program. Their results take the place of what the compiler foresaw.
#include <ATen/ScalarOps.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/bit_cast.h>

#include <utility>

#include "program.h"

namespace dipu::compiled {

at::Tensor number_tensor(const at::Scalar& number) {
    at::Tensor tensor = at::scalar_to_tensor(number);
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return tensor;
}

void Program::take_result(std::int64_t view, const at::Tensor& result) {
    const auto index = static_cast<std::size_t>(view);
    if (is_slot(specification_.views[index])) {
        slots_[static_cast<std::size_t>(specification_.views[index].offset.value)] = result;
        return;
    }
    at::Tensor& expected = views_[index];
    const auto root = static_cast<std::size_t>(specification_.views[index].root);
    at::Tensor kept = result;
    bool shares = false;
    for (const c10::Storage& storage : storages_) {
        shares = shares || storage.is_alias_of(result.storage());
    }
    const bool fits = result.sizes() == expected.sizes() && result.strides() == expected.strides() && result.storage_offset() == 0;
    TORCH_CHECK(result.sizes() == expected.sizes(), "an operator returned a tensor of the sizes ", result.sizes(),
                ", the program was compiled for ", expected.sizes());
    // What the compiler was told of strides and dtype is a promise to whoever reads the tensor.
    if (!fits || shares || result.scalar_type() != expected.scalar_type()) {
        kept = at::empty_strided(expected.sizes(), expected.strides(), result.options().dtype(expected.scalar_type()));
        kept.copy_(result);
    }
    owned_[root] = kept.storage();
    bind_root(root, owned_[root].mutable_data(), static_cast<std::int64_t>(owned_[root].nbytes()));
}

at::Scalar Program::scalar_of(const IslandArgument& argument) const {
    const std::int64_t value = value_of(argument.numbers[0]);
    return argument.kind == IslandArgument::Kind::kFraction ? at::Scalar(c10::bit_cast<double>(value)) : at::Scalar(value);
}

void Program::run_island(const Island& island) {
    torch::jit::Stack stack;
    stack.reserve(island.arguments.size());
    for (const IslandArgument& argument : island.arguments) {
        switch (argument.kind) {
            case IslandArgument::Kind::kValue:
                stack.push_back(argument.value);
                break;
            case IslandArgument::Kind::kTensor:
                stack.emplace_back(argument.tensors[0] < 0 ? c10::IValue() : c10::IValue(view(argument.tensors[0])));
                break;
            case IslandArgument::Kind::kTensors:
                if (argument.list_of_optional) {
                    c10::List<std::optional<at::Tensor>> list;
                    for (const std::int64_t index : argument.tensors) {
                        list.push_back(index < 0 ? std::optional<at::Tensor>() : std::optional<at::Tensor>(view(index)));
                    }
                    stack.emplace_back(std::move(list));
                } else {
                    c10::List<at::Tensor> list;
                    for (const std::int64_t index : argument.tensors) {
                        list.push_back(view(index));
                    }
                    stack.emplace_back(std::move(list));
                }
                break;
            case IslandArgument::Kind::kNumber:
            case IslandArgument::Kind::kFraction:
                stack.emplace_back(argument.tensor_of_number ? c10::IValue(number_tensor(scalar_of(argument))) : c10::IValue(scalar_of(argument)));
                break;
            case IslandArgument::Kind::kNumbers: {
                c10::List<std::int64_t> list;
                for (const Number& number : argument.numbers) {
                    list.push_back(value_of(number));
                }
                stack.emplace_back(std::move(list));
                break;
            }
        }
    }
    const at::AutoDispatchBelowADInplaceOrView below;
    island.op.callBoxed(stack);
    std::size_t next = 0;
    const auto take = [&](const at::Tensor& result) {
        if (next < island.results.size() && island.results[next] >= 0) {
            take_result(island.results[next], result);
        }
        ++next;
    };
    for (const c10::IValue& value : stack) {
        if (value.isTensorList()) {
            for (const at::Tensor& item : value.toTensorVector()) {
                take(item);
            }
        } else if (value.isTensor()) {
            take(value.toTensor());
        } else {
            ++next;
        }
    }
}

}  // namespace dipu::compiled
