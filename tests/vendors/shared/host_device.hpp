// Device functions on the host's memory, registered as in 2023; a vendor's device.cpp includes this once.
#pragma once

#include <diopi_register.h>

#include <cstdlib>
#include <cstring>

#include "record.hpp"

extern "C" {

static int32_t make_stream(diopiStreamHandle_t* stream) {
    *stream = nullptr;
    return diopiSuccess;
}

static int32_t done(diopiStreamHandle_t) { return diopiSuccess; }

static void* take(uint64_t bytes) { return std::malloc(bytes); }

static void give(void* ptr) { std::free(ptr); }

static int32_t copy_bytes(diopiStreamHandle_t, void* dst, const void* src, uint64_t bytes) {
    std::memcpy(dst, src, bytes);
    return diopiSuccess;
}

static const char* last_error() { return "the host failed"; }

int32_t initLibrary() {
    std::cout << "registered\n";
    diopiRegisterDeviceMallocFunc(take);
    diopiRegisterDevMemFreeFunc(give);
    diopiRegisterStreamCreateFunc(make_stream);
    diopiRegisterStreamDestroyFunc(done);
    diopiRegisterSynchronizeStreamFunc(done);
    diopiRegisterMemcpyD2DAsyncFunc(copy_bytes);
    diopiRegisterMemcpyD2HAsyncFunc(copy_bytes);
    diopiRegisterMemcpyH2DAsyncFunc(copy_bytes);
    diopiRegisterGetLastErrorFunc(last_error);
    return diopiSuccess;
}

int32_t finalizeLibrary() { return diopiSuccess; }

const char* diopiRecord() { return shared::record().c_str(); }

}  // extern "C"
