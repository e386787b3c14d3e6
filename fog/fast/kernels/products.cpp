// The products of an update as operations on tensors; `multiply.h` computes them.
//
// Compiled updates call the functions with C linkage directly, everybody else the operations that
// are registered at the end: finding one of those takes longer than a small product.

#include "multiply.h"

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using torch::stable::Tensor;

void check(bool fits, const char* message) { STD_TORCH_CHECK(fits, message); }

// (E, rows, columns), or (rows, columns) for every member alike. Rows may be columns of a wider
// block, as those of a batch are, but each lies in one piece.
struct Stack {
  const float* data;
  int64_t members = 1, rows, columns, step = 0, row;

  explicit Stack(AtenTensorHandle tensor) {
    int64_t dims, *sizes, *strides;
    int32_t type;
    void* memory;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_dim(tensor, &dims));
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_sizes(tensor, &sizes));
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_strides(tensor, &strides));
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(tensor, &type));
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_data_ptr(tensor, &memory));
    check(type == aoti_torch_dtype_float32(), "fog: float32 only");
    check((dims == 2 || dims == 3) && strides[dims - 1] == 1, "fog: rows in one piece only");
    data = static_cast<const float*>(memory);
    rows = sizes[dims - 2];
    row = strides[dims - 2];
    columns = sizes[dims - 1];
    if (dims == 3) {
      members = sizes[0];
      step = strides[0];
    }
  }
  View plain(int64_t member) const { return {data + member * step, row, 1}; }
  View transposed(int64_t member) const { return {data + member * step, 1, row}; }
};

// A new tensor (members, rows, columns), or (rows, columns) if `members` is 0, and its memory.
float* make(int64_t members, int64_t rows, int64_t columns, AtenTensorHandle* made) {
  const int64_t sizes[] = {members, rows, columns}, strides[] = {rows * columns, columns, 1};
  const int skipped = members == 0;
  void* memory;
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
      3 - skipped, sizes + skipped, strides + skipped, aoti_torch_dtype_float32(),
      aoti_torch_device_type_cpu(), 0, made));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_data_ptr(*made, &memory));
  return static_cast<float*>(memory);
}

const float* gate_of(AtenTensorHandle gate, int64_t members, int64_t rows, int64_t columns) {
  const Stack found(gate);
  check(found.members == members && found.rows == rows && found.columns == columns &&
            found.row == columns && (members == 1 || found.step == rows * columns),
        "fog: a gate of another shape than its result");
  return found.data;
}

void dense(AtenTensorHandle inputs, AtenTensorHandle weight, AtenTensorHandle bias, bool relu,
           AtenTensorHandle* output) {
  const Stack x(inputs), w(weight), b(bias);
  check(x.columns == w.rows && (x.step == 0 || x.members == w.members) && b.rows == 1 &&
            b.members == w.members && b.columns == w.columns,
        "fog::dense: sizes");
  float* result = make(w.members, x.rows, w.columns, output);
  std::vector<Product> products;
  for (int64_t e = 0; e < w.members; ++e) {
    Finish finish;
    finish.bias = b.plain(e).data;
    finish.relu = relu;
    products.push_back({x.plain(e), w.plain(e), x.rows, w.rows, w.columns,
                        result + e * x.rows * w.columns, finish});
  }
  multiply(std::move(products));
}

void back(AtenTensorHandle gradient, AtenTensorHandle weight, AtenTensorHandle* gate,
          AtenTensorHandle* output) {
  const Stack g(gradient), w(weight);
  check(g.columns == w.columns && g.members == w.members, "fog::back: sizes");
  float* result = make(w.members, g.rows, w.rows, output);
  const float* gates = gate ? gate_of(*gate, w.members, g.rows, w.rows) : nullptr;
  std::vector<Product> products;
  for (int64_t e = 0; e < w.members; ++e) {
    const int64_t offset = e * g.rows * w.rows;
    Finish finish;
    if (gates) finish.gate = gates + offset;
    products.push_back(
        {g.plain(e), w.transposed(e), g.rows, w.columns, w.rows, result + offset, finish});
  }
  multiply(std::move(products));
}

void weight_gradients(AtenTensorHandle inputs, AtenTensorHandle gradient, AtenTensorHandle* weight,
                      AtenTensorHandle* bias) {
  const Stack x(inputs), g(gradient);
  check(x.rows == g.rows && (x.step == 0 || x.members == g.members),
        "fog::weight_gradients: sizes");
  float* weights = make(g.members, x.columns, g.columns, weight);
  float* biases = make(g.members, 1, g.columns, bias);
  std::vector<Product> products;
  for (int64_t e = 0; e < g.members; ++e)
    products.push_back({x.transposed(e), g.plain(e), x.columns, g.rows, g.columns,
                        weights + e * x.columns * g.columns, Finish(), biases + e * g.columns});
  multiply(std::move(products));
}

void back_one_twin(AtenTensorHandle gradient, AtenTensorHandle weight, AtenTensorHandle pick,
                 AtenTensorHandle* gate, AtenTensorHandle* output) {
  const Stack g(gradient), w(weight);
  int64_t count;
  int32_t type;
  void* picks;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_numel(pick, &count));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(pick, &type));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_data_ptr(pick, &picks));
  check(g.columns == w.columns && g.members == 1 && w.members == 2 && count == g.rows &&
            type == aoti_torch_dtype_bool(),
        "fog::back_one_twin: sizes");
  float* result = make(0, g.rows, w.rows, output);
  const float* gates = gate ? gate_of(*gate, 2, g.rows, w.rows) : nullptr;
  std::vector<int64_t> rows[2];
  for (int64_t row = 0; row < g.rows; ++row)
    rows[static_cast<const bool*>(picks)[row]].push_back(row);
  // Rows of one twin side by side: the tiles then read as fast as in any other product.
  std::vector<float> gathered(g.rows * g.columns);
  std::vector<Product> products;
  float* next = gathered.data();
  for (int64_t e = 0; e < 2; ++e) {
    const View left{next, g.columns, 1};
    for (int64_t row : rows[e]) {
      std::memcpy(next, g.plain(0).at(row, 0), g.columns * sizeof(float));
      next += g.columns;
    }
    Finish finish;
    finish.rows = rows[e].data();
    if (gates) finish.gate = gates + e * g.rows * w.rows;
    const int64_t height = static_cast<int64_t>(rows[e].size());
    if (height)
      products.push_back({left, w.transposed(e), height, g.columns, w.rows, result, finish});
  }
  multiply(std::move(products));
}

// An exception must not pass through C; torch's own functions print it and return an error too.
template <class Work>
AOTITorchError guarded(Work work) {
  try {
    work();
    return AOTI_TORCH_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return AOTI_TORCH_FAILURE;
  }
}

// What the operations need beside the above: tensors that count their owners.

Tensor dense_op(const Tensor& inputs, const Tensor& weight, const Tensor& bias, bool relu) {
  AtenTensorHandle output;
  dense(inputs.get(), weight.get(), bias.get(), relu, &output);
  return Tensor(output);
}

Tensor back_op(const Tensor& gradient, const Tensor& weight, std::optional<Tensor> gate) {
  AtenTensorHandle output, gates = gate ? gate->get() : nullptr;
  back(gradient.get(), weight.get(), gate ? &gates : nullptr, &output);
  return Tensor(output);
}

std::tuple<Tensor, Tensor> weight_gradients_op(const Tensor& inputs, const Tensor& gradient) {
  AtenTensorHandle weight, bias;
  weight_gradients(inputs.get(), gradient.get(), &weight, &bias);
  return {Tensor(weight), Tensor(bias)};
}

Tensor back_one_twin_op(const Tensor& gradient, const Tensor& weight, const Tensor& pick,
                      std::optional<Tensor> gate) {
  AtenTensorHandle output, gates = gate ? gate->get() : nullptr;
  back_one_twin(gradient.get(), weight.get(), pick.get(), gate ? &gates : nullptr, &output);
  return Tensor(output);
}

}  // namespace

// Declared again in `fog.kernels`, for the compiler.
extern "C" {
AOTITorchError aoti_torch_cpu_dense(AtenTensorHandle inputs, AtenTensorHandle weight,
                                    AtenTensorHandle bias, int32_t relu, AtenTensorHandle* output) {
  return guarded([&] { dense(inputs, weight, bias, relu != 0, output); });
}

AOTITorchError aoti_torch_cpu_back(AtenTensorHandle gradient, AtenTensorHandle weight,
                                   AtenTensorHandle* gate, AtenTensorHandle* output) {
  return guarded([&] { back(gradient, weight, gate, output); });
}

AOTITorchError aoti_torch_cpu_weight_gradients(AtenTensorHandle inputs, AtenTensorHandle gradient,
                                               AtenTensorHandle* weight, AtenTensorHandle* bias) {
  return guarded([&] { weight_gradients(inputs, gradient, weight, bias); });
}

AOTITorchError aoti_torch_cpu_back_one_twin(AtenTensorHandle gradient, AtenTensorHandle weight,
                                          AtenTensorHandle pick, AtenTensorHandle* gate,
                                          AtenTensorHandle* output) {
  return guarded([&] { back_one_twin(gradient, weight, pick, gate, output); });
}
}

STABLE_TORCH_LIBRARY_FRAGMENT(fog, library) {
  library.def("dense(Tensor inputs, Tensor weight, Tensor bias, bool relu) -> Tensor");
  library.def("back(Tensor gradient, Tensor weight, Tensor? gate) -> Tensor");
  library.def("weight_gradients(Tensor inputs, Tensor gradient) -> (Tensor, Tensor)");
  library.def("back_one_twin(Tensor gradient, Tensor weight, Tensor pick, Tensor? gate) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(fog, CPU, library) {
  library.impl("dense", TORCH_BOX(&dense_op));
  library.impl("back", TORCH_BOX(&back_op));
  library.impl("weight_gradients", TORCH_BOX(&weight_gradients_op));
  library.impl("back_one_twin", TORCH_BOX(&back_one_twin_op));
}
