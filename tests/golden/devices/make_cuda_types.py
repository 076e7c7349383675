# SPDX-License-Identifier: Apache-2.0
"""Golden table of the types for which LibTorch's CUDA half has kernels, op by op.

usage: make_cuda_types.py > cuda_types.txt, with torch 2.11.0 (+cu130) and expecttest installed; needs no GPU

PyTorch's own tests declare for each op the types that they run on GPUs (OpInfo.dtypesIfCUDA) and fail where another
type works or one of these does not. A line has the op's name in ATen, without the underscore of in-place forms, then the
types that its first tensor may have (for `where`: its second tensor), as c10::toString names them.
"""

import torch
import torch.utils._triton

# The declarations depend on the GPU: without a GPU, types that need a recent one would be missing.
torch.utils._triton.has_triton = lambda: False
from torch.testing._internal import common_cuda  # noqa: E402, F401

torch.cuda.is_available = lambda: True
torch.cuda.get_device_capability = lambda device=None: (8, 0)
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

NAMES = {
    torch.float32: "Float", torch.float64: "Double", torch.bfloat16: "BFloat16", torch.float16: "Half",
    torch.int64: "Long", torch.int32: "Int", torch.int16: "Short", torch.int8: "Char", torch.uint8: "Byte",
    torch.bool: "Bool",
}  # fmt: skip

# Ops that the declarations do not name, each with an op that has the same types.
FORMULAS = {
    "_fused_adamw": "nn.functional.mse_loss",  # floating-point numbers
    "_log_softmax": "_log_softmax_backward_data",
    "_softmax": "_softmax_backward_data",
    "_index_put_impl": "index_put",
    "index": "index_put",
    "native_dropout": "nn.functional.dropout",
    "native_layer_norm_backward": "native_layer_norm",
    "nll_loss_backward": "nn.functional.nll_loss",
    "nll_loss_forward": "nn.functional.nll_loss",
    "resize": "fill",
    "threshold_backward": "nn.functional.threshold",
    "zero": "fill",
}


def main():
    types = {}

    def add(name, declared):
        types.setdefault(name, set()).update(NAMES[of] for of in declared if of in NAMES)

    for op in op_db:
        for name in {op.name, op.aten_name, op.aten_name.removeprefix("nn.functional.")}:
            add(name, op.dtypesIfCUDA)
        if op.aten_backward_name:
            add(op.aten_backward_name, op.backward_dtypesIfCUDA)
    for name, like in FORMULAS.items():
        assert name not in types, name
        types[name] = types[like]
    for name in sorted(types):
        if "." not in name:
            print(name, *sorted(types[name]))


main()
