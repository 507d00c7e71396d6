// The random generator of a device: a seed and an offset, from which counter-based kernels draw.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <memory>

#include "export.h"
#include "releases.h"

namespace dipu {

// The 32-bit numbers of whole Philox counters, which give four each: what an offset moves on by. Modulo 2^64.
constexpr uint64_t counted(uint64_t numbers) { return numbers / 4 * 4 + (numbers % 4 == 0 ? 0 : 4); }

class Generator final : public c10::GeneratorImpl {
public:
    explicit Generator(c10::DeviceIndex device, uint64_t seed = c10::default_rng_seed_val);
    // One that stands where two numbers on the device say, for a gradient that draws what its forward operator drew.
    Generator(at::Tensor seed, at::Tensor offset);

    void set_current_seed(uint64_t seed) override;
    void set_offset(uint64_t offset) override;
    // Both wait for the device where the state lies there.
    uint64_t get_offset() const override;
    uint64_t current_seed() const override;
    uint64_t seed() override;
    // The state is 16 bytes on the CPU: seed, offset.
    void set_state(const c10::TensorImpl& state) override;
    c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
    // The state itself rather than a copy: both generators move on together, until one is given another state.
    void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& other) override;
    c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override;
    // Reserves numbers: seed and offset are on the CPU, but where the current stream is captured on the device, written by each replay.
    void philox_state(uint64_t numbers, at::Tensor& seed, at::Tensor& offset,
                      at::Tensor& intragraph_offset) DIPU_OVERRIDE_SINCE_2_14;
    // Writes seed and offset into numbers on the device; of a recorded stream each replay writes its own.
    void write_state(const at::Tensor& seed, const at::Tensor& offset);
    // Those that it was made of; undefined for any other generator, and once it has another state.
    const at::Tensor& stored_seed() const { return stored_seed_; }
    const at::Tensor& stored_offset() const { return stored_offset_; }
    // Another generator of the same state, and whether one is.
    c10::intrusive_ptr<Generator> shared() const;
    bool shares(const Generator& other) const { return state_ == other.state_; }
    static c10::DeviceType device_type() { return c10::kPrivateUse1; }

private:
    Generator* clone_impl() const override;

    struct State {
        uint64_t seed;
        uint64_t offset = 0;
    };
    void take(const State& state);

    std::shared_ptr<State> state_;  // never null
    at::Tensor stored_seed_, stored_offset_;
};

// The default generator of a device.
DIPU_API const at::Generator& default_generator(c10::DeviceIndex device);

// Gives all default generators this seed, also those that are not made yet.
DIPU_API void seed_all(uint64_t seed);

at::Generator new_generator(c10::DeviceIndex device);

// A CPU generator whose numbers depend on the state of `generator`, which moves on.
at::Generator cpu_twin(const at::Generator& generator);
// The last one that was made of a generator that now stands at seed and offset.
at::Generator last_cpu_twin(uint64_t seed, uint64_t offset);

}  // namespace dipu
