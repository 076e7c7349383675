// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for matrix_product: at least one term, all of one shape
// and type.
#pragma once

#include "convoy/model/kernels/matrix_product/matrix_product.h"

namespace convoy::kernels {

struct MatrixProductOps {
  at::Tensor (*product)(const std::vector<ProductTerm>& terms, const ProductOptions& options);
};

const MatrixProductOps& matrix_product_ops(at::Device device);  // chosen by registry/op_table.cpp

extern const MatrixProductOps kMatrixProductCpu;
extern const MatrixProductOps kMatrixProductAten;  // any device

}  // namespace convoy::kernels
