// Seeds and offsets in device memory, one pair for each state of a generator.
#include "captured_draws.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>
#include <mutex>

namespace dipu {

CapturedDraws::Reserved CapturedDraws::reserve(Generator& generator, uint64_t numbers) {
    auto draw =
        std::find_if(draws_.begin(), draws_.end(), [&](const Draw& each) { return each.state->shares(generator); });
    if (draw == draws_.end()) {
        const auto cell = [&] { return at::empty({1}, at::dtype(at::kLong).device(generator.device())); };
        draws_.push_back({c10::intrusive_ptr<Generator>::reclaim_copy(&generator), generator.shared(), cell(), cell()});
        draw = draws_.end() - 1;
    }
    const uint64_t position = draw->numbers;
    TORCH_CHECK(numbers <= std::numeric_limits<uint64_t>::max() - 3 - position,
                "a graph draws fewer than 2^64 random numbers in a replay");
    draw->numbers += counted(numbers);
    return {draw->seed, draw->offset, position};
}

void CapturedDraws::begin_replay() {
    for (const Draw& draw : draws_) {
        const std::lock_guard<std::mutex> lock(draw.generator->mutex_);
        draw.seed.fill_(static_cast<int64_t>(draw.state->current_seed()));
        draw.offset.fill_(static_cast<int64_t>(draw.state->get_offset()));
        draw.state->set_offset(draw.state->get_offset() + draw.numbers);
    }
}

}  // namespace dipu
