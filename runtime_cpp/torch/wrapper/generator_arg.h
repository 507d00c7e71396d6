// A generator argument: the caller's, or the default one of the device, locked for the length of the call.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <mutex>
#include <optional>

#include <diopi/diopirt.h>

#include "export.h"

namespace dipu {

// As vendors' functions take it; it lives as long as `generator` does.
inline diopiGeneratorHandle_t generator_handle(const at::Generator& generator) {
    return reinterpret_cast<diopiGeneratorHandle_t>(const_cast<at::Generator*>(&generator));
}

class GeneratorArg {
public:
    // Throws c10::Error when the caller's generator belongs to another kind of device.
    DIPU_API GeneratorArg(const std::optional<at::Generator>& generator, c10::Device device);

    operator diopiGeneratorHandle_t() const { return generator_handle(generator_); }
    const at::Generator& generator() const { return generator_; }

private:
    at::Generator generator_;
    std::unique_lock<std::mutex> lock_;
};

}  // namespace dipu
