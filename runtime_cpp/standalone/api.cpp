// The C functions of standalone.h.
#include <memory>
#include <string>

#include "context.h"
#include "error.h"
#include "generator.h"
#include "standalone.h"
#include "tensor.h"
#include "vendor.h"

using diopi::standalone::at_boundary;
using diopi::standalone::Error;
using diopi::standalone::Layout;
using diopi::standalone::require;
using diopi::standalone::Storage;
using diopi::standalone::vendor;

namespace {

// Runs `make()`, which gives a new object, and hands it to the caller; null after a failure.
template <class Make>
auto made(Make&& make) noexcept -> decltype(make().release()) {
    decltype(make().release()) object = nullptr;
    static_cast<void>(at_boundary([&] { object = make().release(); }));
    return object;
}

std::unique_ptr<diopiTensor> make_tensor(Layout layout, int64_t storage_elements, int dtype, int device) {
    require(device == diopi_host || device == diopi_device, "the device is 0 for the host or 1 for the device");
    require(storage_elements >= layout.storage_elements(), "the storage is too small for the tensor");
    const auto type = static_cast<diopiDtype_t>(dtype);
    const auto bytes = static_cast<uint64_t>(storage_elements * diopi::standalone::element_bytes(type));
    auto storage = std::make_shared<Storage>(bytes, static_cast<diopiDevice_t>(device));
    return diopi::standalone::make_tensor(std::move(storage), std::move(layout), type);
}

}  // namespace

const char* standalone_last_error(void) { return diopi::standalone::last_error(); }

int standalone_load(const char* path) {
    return at_boundary([&] {
        require(path != nullptr, "standalone_load: the path is null");
        diopi::standalone::load_vendor(path);
    });
}

void* standalone_symbol(const char* name) {
    void* address = nullptr;
    static_cast<void>(at_boundary([&] {
        require(name != nullptr, "standalone_symbol: the name is null");
        address = vendor().symbol(name);
        if (address == nullptr) {
            throw Error("'" + vendor().path() + "' has no function '" + name + "'", diopiNoImplement);
        }
    }));
    return address;
}

int standalone_set_device(int device) {
    return at_boundary([&] { vendor().set_device(device); });
}

int standalone_device_memory(uint64_t* used_bytes) {
    return at_boundary([&] {
        require(used_bytes != nullptr, "standalone_device_memory: the result pointer is null");
        *used_bytes = vendor().used_memory();
    });
}

diopiContextHandle_t standalone_context_create(void) {
    return made([] { return std::make_unique<diopiContext>(); });
}

int standalone_context_destroy(diopiContextHandle_t ctx) {
    return at_boundary([&] { delete ctx; });
}

int standalone_context_synchronize(diopiContextHandle_t ctx) {
    return at_boundary([&] {
        require(ctx != nullptr, "standalone_context_synchronize: the context is null");
        ctx->synchronize();
    });
}

int standalone_context_reset(diopiContextHandle_t ctx) {
    return at_boundary([&] {
        require(ctx != nullptr, "standalone_context_reset: the context is null");
        ctx->reset();
    });
}

int standalone_context_check_guards(diopiContextHandle_t ctx) {
    return at_boundary([&] {
        require(ctx != nullptr, "standalone_context_check_guards: the context is null");
        ctx->check_guards();
    });
}

diopiTensorHandle_t standalone_tensor_create(const int64_t* sizes, const int64_t* strides, int64_t ndim,
                                             int64_t storage_offset, int64_t storage_elements, int dtype, int device) {
    return made([&] {
        require(ndim >= 0 && (ndim == 0 || sizes != nullptr), "standalone_tensor_create: the sizes are missing");
        Layout layout;
        if (ndim > 0) layout.sizes.assign(sizes, sizes + ndim);
        if (ndim > 0 && strides != nullptr) {
            layout.strides.assign(strides, strides + ndim);
        } else {
            layout.strides = diopi::standalone::row_major_strides(layout.sizes);
        }
        layout.storage_offset = storage_offset;
        return make_tensor(std::move(layout), storage_elements, dtype, device);
    });
}

int standalone_tensor_destroy(diopiTensorHandle_t th) {
    return at_boundary([&] { delete th; });
}

int standalone_tensor_write(diopiTensorHandle_t th, const void* src, uint64_t bytes) {
    return at_boundary([&] {
        require(th != nullptr && (src != nullptr || bytes == 0), "standalone_tensor_write: an argument is null");
        th->storage->write(src, bytes);
    });
}

int standalone_tensor_read(diopiConstTensorHandle_t th, void* dst, uint64_t bytes) {
    return at_boundary([&] {
        require(th != nullptr && (dst != nullptr || bytes == 0), "standalone_tensor_read: an argument is null");
        th->storage->read(dst, bytes);
    });
}

int standalone_tensor_check_guards(diopiConstTensorHandle_t th) {
    return at_boundary([&] {
        require(th != nullptr, "standalone_tensor_check_guards: the tensor is null");
        th->storage->check_guards();
    });
}

int standalone_set_fresh(int byte) {
    return at_boundary([&] {
        require(byte >= 0 && byte <= 0xFF, "standalone_set_fresh: the byte is a number from 0 to 255");
        diopi::standalone::set_fresh(static_cast<unsigned char>(byte));
    });
}

diopiGeneratorHandle_t standalone_generator_create(uint64_t seed) {
    return made([&] { return std::make_unique<diopiGenerator>(diopiGenerator{seed, 0}); });
}

int standalone_generator_destroy(diopiGeneratorHandle_t th) {
    return at_boundary([&] { delete th; });
}
