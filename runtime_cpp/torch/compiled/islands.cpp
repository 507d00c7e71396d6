// Islands: operators of the framework in the middle of a program. Their results take the place of what the compiler foresaw.
#include <ATen/ScalarOps.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/bit_cast.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <algorithm>
#include <utility>

#include "program.h"

namespace dipu::compiled {

at::Tensor number_tensor(const at::Scalar& number) {
    at::Tensor tensor = at::scalar_to_tensor(number);
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return tensor;
}

// Where it borrows memory is the arena, which is over with the run, or what a recording has in place of an argument; all else
// is memory that work may go on in.
at::Tensor Program::operand(int64_t index) const {
    const auto at = static_cast<std::size_t>(index);
    const View& view = specification_.views[at];
    if (view.slot >= 0) {
        return slots_[static_cast<std::size_t>(view.slot)];
    }
    const RootKind kind = root_of(view).kind;
    return kind == RootKind::kArena || (recording_ && kind == RootKind::kInput) ? views_[at]
                                                                                : over_own_memory(view, views_[at]);
}

at::Tensor Program::stack_tensor(int64_t view, std::vector<Read>& reads) const {
    at::Tensor tensor = operand(view);
    if (tensor.defined() && tensor.has_storage()) {
        reads.push_back({specification_.views[static_cast<std::size_t>(view)].root, tensor.storage()});
    }
    return tensor;
}

// Which values share memory is what the compiler was told of the graph, and nothing else: a result that shares it with an
// argument all the same is copied, unless its view says so.
void Program::take_result(int64_t view, const at::Tensor& result, const std::vector<Read>& reads) {
    const auto index = static_cast<std::size_t>(view);
    const View& foreseen = specification_.views[index];
    const bool is_slot = foreseen.slot >= 0;
    const bool shares =
        result.has_storage() && std::any_of(reads.begin(), reads.end(), [&](const Read& read) {
            return read.storage.is_alias_of(result.storage()) && !(is_slot && read.root == foreseen.root);
        });
    if (is_slot) {
        slots_[static_cast<std::size_t>(foreseen.slot)] = shares ? c10d::wait_tensor(result).clone() : result;
        return;
    }
    const at::Tensor& expected = views_[index];
    const auto root = static_cast<std::size_t>(foreseen.root);
    TORCH_CHECK(result.sizes() == expected.sizes(), "an operator returned a tensor of the sizes ", result.sizes(),
                ", the program was compiled for ", expected.sizes());
    if (root_of(foreseen).kind != RootKind::kIsland) {  // the program has memory for it
        expected.copy_(c10d::wait_tensor(result));
        return;
    }
    const bool fits = result.strides() == expected.strides() && result.storage_offset() == 0 &&
                      result.is_conj() == expected.is_conj() && result.is_neg() == expected.is_neg() &&
                      result.scalar_type() == expected.scalar_type();
    const bool kept = fits && !shares;
    // What the compiler was told of strides and dtype is a promise to whoever reads the tensor.
    owned_[root] =
        kept ? result.storage()
             : at::empty_strided(expected.sizes(), expected.strides(), result.options().dtype(expected.scalar_type()))
                   .storage();
    bind_root(root, owned_[root].mutable_data(), static_cast<int64_t>(owned_[root].nbytes()));
    if (!kept) {
        expected.copy_(c10d::wait_tensor(result));
    }
}

at::Scalar Program::scalar_of(const IslandArgument& argument) const {
    const int64_t value = value_of(argument.numbers[0]);
    return argument.kind == IslandArgument::Kind::kFraction ? at::Scalar(c10::bit_cast<double>(value))
                                                            : at::Scalar(value);
}

void Program::run_island(const Island& island) {
    torch::jit::Stack stack;
    std::vector<Read> reads;
    stack.reserve(island.arguments.size());
    for (const IslandArgument& argument : island.arguments) {
        switch (argument.kind) {
            case IslandArgument::Kind::kValue: stack.push_back(argument.value); break;
            case IslandArgument::Kind::kTensor:
                stack.emplace_back(argument.tensors[0] < 0 ? c10::IValue()
                                                           : c10::IValue(stack_tensor(argument.tensors[0], reads)));
                break;
            case IslandArgument::Kind::kTensors:
                if (argument.list_of_optional) {
                    c10::List<std::optional<at::Tensor>> list;
                    for (const int64_t index : argument.tensors) {
                        list.push_back(index < 0 ? std::optional<at::Tensor>()
                                                 : std::optional<at::Tensor>(stack_tensor(index, reads)));
                    }
                    stack.emplace_back(std::move(list));
                } else {
                    c10::List<at::Tensor> list;
                    for (const int64_t index : argument.tensors) {
                        list.push_back(stack_tensor(index, reads));
                    }
                    stack.emplace_back(std::move(list));
                }
                break;
            case IslandArgument::Kind::kNumber:
            case IslandArgument::Kind::kFraction:
                stack.emplace_back(argument.tensor_of_number ? c10::IValue(number_tensor(scalar_of(argument)))
                                                             : c10::IValue(scalar_of(argument)));
                break;
            case IslandArgument::Kind::kNumbers: {
                c10::List<int64_t> list;
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
            take_result(island.results[next], result, reads);
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
