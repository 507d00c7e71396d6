// Seed, offset and state of the device generators.
#include "generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <c10/core/GeneratorImpl.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "captured_draws.h"
#include "device.h"
#include "memory/captures.h"
#include "stream.h"

namespace dipu {
namespace {

constexpr std::size_t kStateBytes = 2 * sizeof(uint64_t);

// What the fallback consumes of a generator's offset.
constexpr uint64_t kTwinStep = counted(1);

// Spreads the bits of seed and offset over one number (the finalizer of SplitMix64).
uint64_t mixed(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
}

// What the default generators begin with: to seed a process asks for no device.
std::atomic<uint64_t> first_seed{c10::default_rng_seed_val};
std::atomic<bool> generators_made{false};

const std::vector<at::Generator>& default_generators() {
    static const auto& generators = *[] {
        auto* const all = new std::vector<at::Generator>;
        generators_made.store(true);
        for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
            all->push_back(at::make_generator<Generator>(index, first_seed.load()));
        }
        return all;
    }();
    return generators;
}

}  // namespace

// A generator has no dispatch key: an operator goes where its tensors are, and there a wrong generator is named.
Generator::Generator(c10::DeviceIndex device, uint64_t seed)
    : c10::GeneratorImpl(c10::Device(c10::kPrivateUse1, device), c10::DispatchKeySet()),
      state_(std::make_shared<State>(State{seed})) {}

Generator::Generator(at::Tensor seed, at::Tensor offset) : Generator(seed.device().index()) {
    stored_seed_ = std::move(seed);
    stored_offset_ = std::move(offset);
}

void Generator::take(const State& state) {
    stored_seed_ = stored_offset_ = at::Tensor();
    *state_ = state;
}

void Generator::set_current_seed(uint64_t seed) { take({seed}); }

void Generator::set_offset(uint64_t offset) { take({current_seed(), offset}); }

uint64_t Generator::current_seed() const {
    return stored_seed_.defined() ? static_cast<uint64_t>(stored_seed_.item<int64_t>()) : state_->seed;
}

uint64_t Generator::get_offset() const {
    return stored_offset_.defined() ? static_cast<uint64_t>(stored_offset_.item<int64_t>()) : state_->offset;
}

void Generator::write_state(const at::Tensor& seed, const at::Tensor& offset) {
    if (CapturedDraws* const draws = recorded_draws(current_stream(device().index()))) {
        const CapturedDraws::Reserved reserved = draws->reserve(*this, 0);
        seed.copy_(reserved.seed.view(seed.sizes()));
        offset.copy_(reserved.offset.view(offset.sizes()));
        offset.add_(static_cast<int64_t>(reserved.position));
        return;
    }
    seed.fill_(static_cast<int64_t>(current_seed()));
    offset.fill_(static_cast<int64_t>(get_offset()));
}

uint64_t Generator::seed() {
    set_current_seed(c10::detail::getNonDeterministicRandom(false));
    return state_->seed;
}

void Generator::set_state(const c10::TensorImpl& state) {
    TORCH_CHECK(state.device_type() == c10::kCPU && state.dtype() == caffe2::TypeMeta::Make<uint8_t>() &&
                    state.is_contiguous() && state.numel() == static_cast<int64_t>(kStateBytes),
                "the state of a dipu generator is a contiguous CPU tensor of ", kStateBytes, " bytes (uint8)");
    std::array<uint64_t, 2> words{};
    std::memcpy(words.data(), state.data(), kStateBytes);
    take({words[0], words[1]});
}

void Generator::graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& other) {
    const auto* const same = dynamic_cast<const Generator*>(other.get());
    TORCH_CHECK(same != nullptr, "the state of a dipu generator comes from another dipu generator, not from one of ",
                other->device());
    stored_seed_ = stored_offset_ = at::Tensor();
    state_ = same->state_;
}

c10::intrusive_ptr<c10::GeneratorImpl> Generator::graphsafe_get_state() const { return shared(); }

c10::intrusive_ptr<Generator> Generator::shared() const {
    auto same = c10::make_intrusive<Generator>(device().index());
    same->state_ = state_;
    return same;
}

void Generator::philox_state(uint64_t numbers, at::Tensor& seed, at::Tensor& offset, at::Tensor& intragraph_offset) {
    const auto on_host = [](uint64_t word) { return at::full({1}, static_cast<int64_t>(word), at::kLong); };
    if (CapturedDraws* const draws = recorded_draws(current_stream(device().index()))) {
        const CapturedDraws::Reserved reserved = draws->reserve(*this, numbers);
        seed = reserved.seed;
        offset = reserved.offset;
        intragraph_offset = on_host(reserved.position);
        return;
    }
    seed = on_host(state_->seed);
    offset = on_host(state_->offset);
    intragraph_offset = on_host(0);
    state_->offset += counted(numbers);
}

c10::intrusive_ptr<c10::TensorImpl> Generator::get_state() const {
    const at::TensorBase state = at::detail::empty_cpu({static_cast<int64_t>(kStateBytes)}, c10::kByte);
    const std::array<uint64_t, 2> words{current_seed(), get_offset()};
    std::memcpy(state.mutable_data_ptr(), words.data(), kStateBytes);
    return state.getIntrusivePtr();
}

Generator* Generator::clone_impl() const {
    auto* const copy = new Generator(device().index());
    *copy->state_ = *state_;
    copy->stored_seed_ = stored_seed_;
    copy->stored_offset_ = stored_offset_;
    return copy;
}

const at::Generator& default_generator(c10::DeviceIndex device) {
    return default_generators()[static_cast<std::size_t>(checked_device(device))];
}

void seed_all(uint64_t seed) {
    first_seed.store(seed);
    if (generators_made.load()) {
        for (at::Generator generator : default_generators()) {
            const std::lock_guard<std::mutex> lock(generator.mutex());
            generator.unsafeGetGeneratorImpl()->set_current_seed(seed);
        }
    }
}

at::Generator new_generator(c10::DeviceIndex device) { return at::make_generator<Generator>(checked_device(device)); }

at::Generator cpu_twin(const at::Generator& generator) {
    auto& source = *at::check_generator<Generator>(generator);
    check_not_recorded(source.device().index(), kDrawing);
    const std::lock_guard<std::mutex> lock(source.mutex_);
    source.set_offset(source.get_offset() + kTwinStep);
    return last_cpu_twin(source.current_seed(), source.get_offset());
}

at::Generator last_cpu_twin(uint64_t seed, uint64_t offset) {
    return at::detail::createCPUGenerator(mixed(seed ^ mixed(offset - kTwinStep)));
}

}  // namespace dipu
