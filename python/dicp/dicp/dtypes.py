"""Element types: the schemas' names of torch's, the C++ that kernels spell, and what an expression computes in."""

import torch

SCHEMA_NAMES = {
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.bool: "bool",
}

STORAGE = {
    torch.int8: "int8_t",
    torch.uint8: "uint8_t",
    torch.int16: "int16_t",
    torch.int32: "int32_t",
    torch.int64: "int64_t",
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.float32: "float",
    torch.float64: "double",
    torch.bool: "bool",
}


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """What expressions over `dtype` compute in: half types in float32."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
