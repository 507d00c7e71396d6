// Recording work and doing it again.
#include "graph.h"

#include <cstring>

#include "device.h"
#include "stream.h"

struct tangGraph_st::Whole {
    std::shared_ptr<const std::vector<Node>> nodes;  // which may outlive the graph
    droplet::Device& device;

    static void run(const void* args) {
        const std::unique_ptr<const Whole> whole(*static_cast<const Whole* const*>(args));
        for (const Node& node : *whole->nodes) {
            whole->device.execute(droplet::Work::kernel, node.kernel, node.args.get());
        }
    }
};

void tangGraph_st::append(tangKernel_t kernel, const void* args, size_t bytes) {
    auto copy = std::make_unique<Block[]>((bytes + sizeof(Block) - 1) / sizeof(Block));
    std::memcpy(copy.get(), args, bytes);
    nodes_->push_back({kernel, bytes, std::move(copy)});
}

void tangGraph_st::launch(tangStream_st& stream) const {
    if (stream.async() && !stream.recording()) {  // one piece of work of the queue
        const auto* const whole = new Whole{nodes_, stream.device()};
        stream.submit(droplet::Work::control, &Whole::run, &whole, sizeof whole);
        return;
    }
    for (const Node& node : *nodes_) stream.submit(droplet::Work::kernel, node.kernel, node.args.get(), node.bytes);
}
