// A vendor library for tests: its device memory is host memory, its few operators are naive, and it fails on request.
//
// -DFAKE_FORM=1 offers the device table, 2 registers the nine classic functions, 3 exports device_malloc and its companions.
// -DFAKE_RECORD=0 adds an ABI record that agrees, 1 one of other functions, 2 of another scalar, 3 of another enum, 4 one
// with an entry that has no name.
// -DFAKE_WITHOUT_MM leaves diopiMm out, likewise FAKE_WITHOUT_ADD and FAKE_WITHOUT_ADD_SCALAR; FAKE_POW adds diopiPow, FAKE_ATTENTION
// attention that it never serves. FAKE_MEMORY bounds its memory, in bytes; FAKE_STATUS is what diopiRelu answers;
// FAKE_SCRATCH has it ask for so many bytes before, and FAKE_SCRATCH_STATUS is what it answers where it gets none.
#include <diopi/abi.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

// A form that uses only some of these leaves the others unused.
#pragma GCC diagnostic ignored "-Wunused-function"

std::mutex memory_mutex;
std::map<void*, uint64_t> blocks;
uint64_t in_use = 0;

uint64_t capacity() {
    const char* const text = std::getenv("FAKE_MEMORY");
    return text == nullptr ? uint64_t{1} << 30 : std::strtoull(text, nullptr, 10);
}

void* allocate(uint64_t bytes) {
    const std::lock_guard<std::mutex> lock(memory_mutex);
    if (in_use + bytes > capacity()) return nullptr;
    void* const pointer = std::malloc(bytes);
    blocks[pointer] = bytes;
    in_use += bytes;
    return pointer;
}

void release(void* pointer) {
    const std::lock_guard<std::mutex> lock(memory_mutex);
    in_use -= blocks.at(pointer);
    blocks.erase(pointer);
    std::free(pointer);
}

int32_t make_stream(diopiStreamHandle_t* stream) {
    *stream = std::malloc(1);
    return 0;
}

int32_t destroy_stream(diopiStreamHandle_t stream) {
    std::free(stream);
    return 0;
}

int32_t sync_stream(diopiStreamHandle_t) { return 0; }

int32_t copy(diopiStreamHandle_t, void* destination, const void* source, uint64_t bytes) {
    std::memcpy(destination, source, bytes);
    return 0;
}

// FAKE_ERROR_BYTE repeats one byte FAKE_ERROR_LENGTH times.
const char* last_error() {
    static std::string text;
    const char* const byte = std::getenv("FAKE_ERROR_BYTE");
    if (byte == nullptr) return "the fake chip is tired";
    text.assign(std::strtoul(std::getenv("FAKE_ERROR_LENGTH"), nullptr, 10), static_cast<char>(std::atoi(byte)));
    return text.c_str();
}

// A float32 tensor as its elements in order, whatever its strides.
struct Floats {
    std::vector<float*> at;
    diopiSize_t shape{};
};

void walk(Floats& floats, float* base, const diopiSize_t& stride, int64_t dim) {
    if (dim == floats.shape.len) {
        floats.at.push_back(base);
        return;
    }
    for (int64_t index = 0; index < floats.shape.data[dim]; ++index)
        walk(floats, base + index * stride.data[dim], stride, dim + 1);
}

bool is_float(diopiConstTensorHandle_t th) {
    diopiDtype_t dtype = diopi_dtype_unsupported;
    return diopiGetTensorDtype(th, &dtype) == diopiSuccess && dtype == diopi_dtype_float32;
}

Floats floats_of(diopiConstTensorHandle_t th) {
    Floats floats;
    diopiSize_t stride{};
    const void* data = nullptr;
    diopiGetTensorShape(th, &floats.shape);
    diopiGetTensorStride(th, &stride);
    diopiGetTensorDataConst(th, &data);
    walk(floats, const_cast<float*>(static_cast<const float*>(data)), stride, 0);
    return floats;
}

double value(const diopiScalar_t* scalar) {
    return scalar->stype == diopi_dtype_float64 ? scalar->fval : static_cast<double>(scalar->ival);
}

}  // namespace

extern "C" {

#if FAKE_FORM == 1
const diopiDeviceApi_t* diopiGetDeviceApi(void) {
    static diopiDeviceApi_t table{};
    table.size = offsetof(diopiDeviceApi_t, device_count);  // an older table: the optional entries are absent
    table.version = DIOPI_DEVICE_API_VERSION;
    table.create_stream = make_stream;
    table.destroy_stream = destroy_stream;
    table.sync_stream = sync_stream;
    table.malloc = allocate;
    table.free = release;
    table.memcpy_h2d_async = copy;
    table.memcpy_d2h_async = copy;
    table.memcpy_d2d_async = copy;
    table.get_last_error_string = last_error;
    return &table;
}
#elif FAKE_FORM == 2
int32_t initLibrary(void) {
    diopiRegisterDeviceMallocFunc(allocate);
    diopiRegisterDevMemFreeFunc(release);
    diopiRegisterStreamCreateFunc(make_stream);
    diopiRegisterStreamDestroyFunc(destroy_stream);
    diopiRegisterSynchronizeStreamFunc(sync_stream);
    diopiRegisterMemcpyH2DAsyncFunc(copy);
    diopiRegisterMemcpyD2HAsyncFunc(copy);
#ifndef FAKE_WITHOUT_D2D
    diopiRegisterMemcpyD2DAsyncFunc(copy);
#endif
    diopiRegisterGetLastErrorFunc(last_error);
    return 0;
}
#elif FAKE_FORM == 3
void* device_malloc(uint64_t bytes) { return allocate(bytes); }
void device_free(void* pointer) { release(pointer); }
int32_t device_make_stream(diopiStreamHandle_t* stream) { return make_stream(stream); }
int32_t device_destroy_stream(diopiStreamHandle_t stream) { return destroy_stream(stream); }
int32_t device_synchronize_stream(diopiStreamHandle_t stream) { return sync_stream(stream); }
int32_t device_memcpy_h2d_async(diopiStreamHandle_t s, void* d, const void* p, uint64_t n) { return copy(s, d, p, n); }
int32_t device_memcpy_d2h_async(diopiStreamHandle_t s, void* d, const void* p, uint64_t n) { return copy(s, d, p, n); }
int32_t device_memcpy_d2d_async(diopiStreamHandle_t s, void* d, const void* p, uint64_t n) { return copy(s, d, p, n); }
#endif

#ifdef FAKE_RECORD
const diopiAbiRecord_t* diopiGetAbiRecord(void) {
    static constexpr diopiAbiEntry_t entries[] = {
#if FAKE_RECORD == 1
        {diopiAbiDeclarations, "functions.h", DIOPI_ABI_FUNCTIONS_HASH + 1},
#elif FAKE_RECORD == 2
        {diopiAbiSize, "diopiScalar_t", sizeof(diopiScalar_t) + 8},
#elif FAKE_RECORD == 3
        {diopiAbiValues, "diopiReduction_t", 1},
#elif FAKE_RECORD == 4
        {diopiAbiSize, nullptr, 8},
#endif
        DIOPI_ABI_COMMON(DIOPI_ABI_ENTRY) DIOPI_ABI_FUNCTIONS(DIOPI_ABI_ENTRY)};
    static constexpr diopiAbiRecord_t record = DIOPI_ABI_RECORD(entries);
    return &record;
}
#endif

#ifndef FAKE_WITHOUT_ADD
diopiError_t diopiAdd(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t other, const diopiScalar_t* alpha) {
    if (!is_float(out)) return diopiDtypeNotSupported;
    Floats a = floats_of(input), b = floats_of(other), o = floats_of(out);
    if (a.at.size() != o.at.size() || b.at.size() != o.at.size()) return diopiNoImplement;  // no broadcasting
    for (size_t i = 0; i < o.at.size(); ++i) *o.at[i] = *a.at[i] + static_cast<float>(value(alpha)) * *b.at[i];
    return diopiSuccess;
}

#endif

#ifndef FAKE_WITHOUT_ADD_SCALAR
diopiError_t diopiAddScalar(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                            const diopiScalar_t* other, const diopiScalar_t* alpha) {
    if (!is_float(out)) return diopiDtypeNotSupported;
    Floats a = floats_of(input), o = floats_of(out);
    for (size_t i = 0; i < o.at.size(); ++i) *o.at[i] = *a.at[i] + static_cast<float>(value(alpha) * value(other));
    return diopiSuccess;
}

#endif

#ifdef FAKE_POW
diopiError_t diopiPow(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      const diopiScalar_t* exponent) {
    if (!is_float(out)) return diopiDtypeNotSupported;
    Floats a = floats_of(input), o = floats_of(out);
    for (size_t i = 0; i < o.at.size(); ++i) *o.at[i] = std::pow(*a.at[i], static_cast<float>(value(exponent)));
    return diopiSuccess;
}
#endif

#ifdef FAKE_ATTENTION
diopiError_t diopiMultiHeadAttention(diopiContextHandle_t, diopiTensorHandle_t, diopiTensorHandle_t,
                                     diopiTensorHandle_t, double, bool, bool, double, diopiTensorHandle_t,
                                     diopiTensorHandle_t, diopiGeneratorHandle_t, diopiTensorHandle_t) {
    return diopiNoImplement;
}
diopiError_t diopiMultiHeadAttentionBackward(diopiContextHandle_t, diopiConstTensorHandle_t, diopiConstTensorHandle_t,
                                             diopiConstTensorHandle_t, diopiConstTensorHandle_t,
                                             diopiConstTensorHandle_t, diopiConstTensorHandle_t, double, bool,
                                             diopiGeneratorHandle_t, double, diopiTensorHandle_t, diopiTensorHandle_t,
                                             diopiTensorHandle_t) {
    return diopiNoImplement;
}
#endif

#ifndef FAKE_WITHOUT_MM
diopiError_t diopiMm(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                     diopiConstTensorHandle_t mat2) {
    if (!is_float(out)) return diopiDtypeNotSupported;
    Floats a = floats_of(input), b = floats_of(mat2), o = floats_of(out);
    const int64_t rows = a.shape.data[0], depth = a.shape.data[1], columns = b.shape.data[1];
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
            float sum = 0;
            for (int64_t k = 0; k < depth; ++k) sum += *a.at[r * depth + k] * *b.at[k * columns + c];
            *o.at[r * columns + c] = sum;
        }
    }
    return diopiSuccess;
}
#endif

diopiError_t diopiRelu(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    const char* const scratch = std::getenv("FAKE_SCRATCH");
    diopiTensorHandle_t buffer = nullptr;
    if (scratch != nullptr && diopiRequireBuffer(ctx, &buffer, std::atoll(scratch), diopi_device) != diopiSuccess) {
        const char* const answer = std::getenv("FAKE_SCRATCH_STATUS");
        return answer == nullptr ? diopiErrorOccurred : static_cast<diopiError_t>(std::atoi(answer));
    }
    const char* const status = std::getenv("FAKE_STATUS");
    if (status != nullptr) return static_cast<diopiError_t>(std::atoi(status));
    if (!is_float(out)) return diopiDtypeNotSupported;
    Floats a = floats_of(input), o = floats_of(out);
    for (size_t i = 0; i < o.at.size(); ++i) *o.at[i] = *a.at[i] > 0 ? *a.at[i] : 0;
    return diopiSuccess;
}

}  // extern "C"
