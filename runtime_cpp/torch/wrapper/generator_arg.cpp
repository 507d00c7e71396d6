// Chooses and locks the generator of a random operator.
#include "generator_arg.h"

#include "device/generator.h"

namespace dipu {

GeneratorArg::GeneratorArg(const std::optional<at::Generator>& generator, c10::Device device)
    : generator_(generator.has_value() && generator->defined() ? *generator : default_generator(device.index())) {
    TORCH_CHECK(generator_.device().is_privateuseone(), "Expected a '", device,
                "' device type for generator but found '", generator_.device(), "'");
    lock_ = std::unique_lock<std::mutex>(generator_.mutex());
}

}  // namespace dipu
