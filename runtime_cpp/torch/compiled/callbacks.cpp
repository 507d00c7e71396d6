// What a program's code calls of the executor while it runs.
#include <exception>
#include <mutex>

#include "program.h"
#include "device/generator.h"
#include "interposer/refusal.h"
#include "wrapper/generator_arg.h"

namespace dipu::compiled {

// Exceptions go past the program's code, which knows statuses only.
template <class Act>
diopiError_t Program::guarded(const Act& act) noexcept {
    try {
        act();
        return diopiSuccess;
    } catch (...) {
        failure_ = std::current_exception();
        return diopiErrorOccurred;
    }
}

diopiError_t Program::on_watch(void* program, int32_t instruction) noexcept {
    auto* const self = static_cast<Program*>(program);
    return self->guarded([&] { self->watch_(instruction); });
}

diopiError_t Program::on_enter(void* program, int32_t stream, diopiContextHandle_t* context,
                               diopiStreamHandle_t* handle) noexcept {
    auto* const self = static_cast<Program*>(program);
    return self->guarded([&] {
        *context = self->lane_run_->enter(static_cast<std::size_t>(stream));
        *handle = (*context)->stream;
    });
}

diopiError_t Program::on_mark(void* program, int32_t event) noexcept {
    auto* const self = static_cast<Program*>(program);
    return self->guarded([&] { self->lane_run_->mark(static_cast<std::size_t>(event)); });
}

diopiError_t Program::on_wait(void* program, int32_t event) noexcept {
    auto* const self = static_cast<Program*>(program);
    return self->guarded([&] { self->lane_run_->wait(static_cast<std::size_t>(event)); });
}

// What the library refuses of a call is for the eager operator, which asks it again and falls back as it always does.
diopiError_t Program::on_refusal(void* program, int32_t index, diopiError_t status) noexcept {
    auto* const self = static_cast<Program*>(program);
    if (!asks_for_fallback(status)) {
        return status;
    }
    return self->guarded([&] { self->run_island(self->specification_.substitutes[static_cast<std::size_t>(index)]); });
}

diopiError_t Program::on_island(void* program, int32_t index) noexcept {
    auto* const self = static_cast<Program*>(program);
    return self->guarded([&] { self->run_island(self->specification_.islands[static_cast<std::size_t>(index)]); });
}

void Program::on_begin_draw(void* program) noexcept {
    at::Generator generator = default_generator(static_cast<Program*>(program)->specification_.device);
    generator.mutex().lock();
}

diopiError_t Program::on_end_draw(void* program, int32_t seed, int32_t offset, diopiError_t status) noexcept {
    auto* const self = static_cast<Program*>(program);
    at::Generator generator = default_generator(self->specification_.device);
    const std::lock_guard<std::mutex> lock(generator.mutex(), std::adopt_lock);
    if (status != diopiSuccess || seed < 0) {
        return status;
    }
    return self->guarded(
        [&] { at::check_generator<Generator>(generator)->write_state(self->operand(seed), self->operand(offset)); });
}

// Null where it cannot be made: the function then refuses it, and the run fails with what went wrong here.
diopiGeneratorHandle_t Program::on_stored_generator(void* program, int32_t seed, int32_t offset) noexcept {
    auto* const self = static_cast<Program*>(program);
    const diopiError_t status = self->guarded(
        [&] { self->stored_generator_ = at::make_generator<Generator>(self->operand(seed), self->operand(offset)); });
    return status == diopiSuccess ? generator_handle(self->stored_generator_) : nullptr;
}

}  // namespace dipu::compiled
