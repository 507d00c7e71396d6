// The random generator of a device: a seed and an offset, from which counter-based kernels draw.
#pragma once

#include <ATen/core/Generator.h>

#include "export.h"

namespace dipu {

class Generator final : public c10::GeneratorImpl {
public:
    explicit Generator(c10::DeviceIndex device, std::uint64_t seed = c10::default_rng_seed_val);

    void set_current_seed(std::uint64_t seed) override;
    void set_offset(std::uint64_t offset) override { offset_ = offset; }
    std::uint64_t get_offset() const override { return offset_; }
    std::uint64_t current_seed() const override { return seed_; }
    std::uint64_t seed() override;
    // The state is 16 bytes on the CPU: seed, offset.
    void set_state(const c10::TensorImpl& state) override;
    c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
    static c10::DeviceType device_type() { return c10::kPrivateUse1; }

private:
    Generator* clone_impl() const override;

    std::uint64_t seed_;
    std::uint64_t offset_ = 0;
};

// The default generator of a device.
DIPU_API const at::Generator& default_generator(c10::DeviceIndex device);

at::Generator new_generator(c10::DeviceIndex device);

// A CPU generator whose numbers depend on the state of `generator`, which moves on.
at::Generator cpu_twin(const at::Generator& generator);

}  // namespace dipu
