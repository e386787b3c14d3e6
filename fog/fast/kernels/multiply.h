// Matrix products of a few hundred rows and columns, near the processor's limit.
//
// For such sizes a library's general product leaves a tenth to a fifth of the processor unused, and
// the sums, gates and biases around it cost passes over memory of their own. Here a result is
// computed in tiles that stay in registers (`tile`) from a panel of the right factor that stays in
// the cache (`pack`), and bias, ReLU or gate are applied before a tile is written.
//
// No sum is split between threads: a result does not depend on their number.

#pragma once

#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace {

// Lanes of a vector register, and how many of them there are.
#if defined(__AVX512F__)
constexpr int kLanes = 16, kRegisters = 32;
#elif defined(__AVX__)
constexpr int kLanes = 8, kRegisters = 16;
#elif defined(__aarch64__)
constexpr int kLanes = 4, kRegisters = 32;
#else
constexpr int kLanes = 4, kRegisters = 16;
#endif

constexpr int kLine = 16;  // floats of a cache line

// A panel is two vectors wide, or three where one would be left over.
constexpr int kMostVectors = 3;

// Rows of a tile: as many as the registers hold with `vectors` of the right factor and one of the
// left beside them. But of rows that are a power of two apart, the first cache holds only sixteen.
constexpr int most_rows(int vectors) {
  return std::min((kRegisters - 1) / vectors - 1, kRegisters / 2 - 2);
}

typedef float Vector __attribute__((vector_size(kLanes * 4)));
typedef float Unaligned __attribute__((vector_size(kLanes * 4), aligned(4)));

Vector load(const float* from) { return *reinterpret_cast<const Unaligned*>(from); }
void store(float* to, Vector value) { *reinterpret_cast<Unaligned*>(to) = value; }

// A matrix somewhere in memory: distances between its rows and between its columns.
struct View {
  const float* data;
  int64_t row, column;

  const float* at(int64_t i, int64_t j) const { return data + i * row + j * column; }
};

// What happens to a result before it is written. Null pointers: nothing.
struct Finish {
  const float* bias = nullptr;     // one number per column, added
  bool relu = false;               // negative entries become zero
  const float* gate = nullptr;     // laid out as the result: zero where this is zero or less
  const int64_t* rows = nullptr;   // where row i of the product goes; i itself if null

  int64_t row(int64_t i) const { return rows ? rows[i] : i; }
};

struct Result {
  float* data;
  int64_t columns;
};

// Memory that will be needed soon: `pieces` of so many cache lines each, `stride` apart.
struct Strip {
  const float* data;
  int64_t stride, lines, pieces;
};

// Asks for strips of memory line by line. Memory that is asked for in time costs nothing, but many
// requests at once would make a product wait.
class Requests {
 public:
  void add(Strip strip) {
    if (strip.pieces > 0) strips_[count_++] = strip;
  }
  void next() {
    if (current_ == count_) return;
    Strip& strip = strips_[current_];
    __builtin_prefetch(strip.data + line_ * kLine);
    if (++line_ < strip.lines) return;
    line_ = 0;
    strip.data += strip.stride;
    if (--strip.pieces == 0) ++current_;
  }

 private:
  Strip strips_[3];
  int count_ = 0, current_ = 0;
  int64_t line_ = 0;
};

// Rows [first, first + Rows) of the product of `left` and a packed panel of `Vectors` vectors per
// row, written to columns [column, column + width) of the result.
template <int Rows, int Vectors>
void tile(View left, int64_t depth, const float* panel, int64_t first, int64_t column, int width,
          Result result, const Finish& finish, Requests requests) {
  Vector sum[Rows][Vectors] = {};
  const float* entry = left.at(first, 0);
  // The rows of the next tile, which follow; columns of it lie in the lines of this one's.
  const float* ahead = left.at(first + Rows, 0);
  const int64_t step = left.column == 1 ? kLine : 0;
  for (int64_t k = 0; k < depth; ++k) {
    __builtin_prefetch(ahead);
    ahead += step;
    requests.next();
    Vector right[Vectors];
    for (int j = 0; j < Vectors; ++j) right[j] = load(panel + j * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const Vector factor = entry[i * left.row] - Vector{};
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) sum[i][j] += factor * right[j];
    }
    entry += left.column;
    panel += Vectors * kLanes;
  }
  // Entries beyond `width` are computed and not written; biases and gates are read up to it.
  const bool whole = width == Vectors * kLanes;
  float padded[Vectors * kLanes] = {};
  const auto read = [&](const float* from, Vector* into) {
    if (!whole) from = static_cast<float*>(std::memcpy(padded, from, width * sizeof(float)));
    for (int j = 0; j < Vectors; ++j) into[j] = load(from + j * kLanes);
  };
  Vector bias[Vectors] = {}, gate[Vectors] = {};
  if (finish.bias) read(finish.bias + column, bias);
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    const int64_t offset = finish.row(first + i) * result.columns + column;
    if (finish.gate) read(finish.gate + offset, gate);
    Vector row_of_tile[Vectors];
    for (int j = 0; j < Vectors; ++j) {
      Vector value = sum[i][j] + bias[j];
      // Written so that NaN stays NaN: a diverged agent must be seen to be so.
      if (finish.relu) value = value < 0.0f ? Vector{} : value;
      if (finish.gate) value = gate[j] <= 0.0f ? Vector{} : value;
      row_of_tile[j] = value;
      if (whole) store(result.data + offset + j * kLanes, value);
    }
    if (!whole) std::memcpy(result.data + offset, row_of_tile, width * sizeof(float));
  }
}

using Tile = void (*)(View, int64_t, const float*, int64_t, int64_t, int, Result, const Finish&,
                      Requests);

template <int Vectors, int... Rows>
Tile tile_of(int64_t rows, std::integer_sequence<int, Rows...>) {
  static constexpr Tile tiles[] = {tile<Rows + 1, Vectors>...};
  return tiles[rows - 1];
}

// Swaps the blocks beside the diagonal of (a, b), seen as blocks of `Step` lanes.
template <int Step, int... Lane>
void swap_blocks(Vector& a, Vector& b, std::integer_sequence<int, Lane...>) {
#if defined(__clang__)
  const Vector low = __builtin_shufflevector(a, b, (Lane & Step ? Lane - Step + kLanes : Lane)...);
  b = __builtin_shufflevector(a, b, (Lane & Step ? Lane + kLanes : Lane + Step)...);
#else
  typedef int Mask __attribute__((vector_size(kLanes * 4)));
  const Vector low = __builtin_shuffle(a, b, Mask{(Lane & Step ? Lane - Step + kLanes : Lane)...});
  b = __builtin_shuffle(a, b, Mask{(Lane & Step ? Lane + kLanes : Lane + Step)...});
#endif
  a = low;
}

template <int Step>
void transpose_from(Vector* square) {
  if constexpr (Step < kLanes) {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i)
      if (!(i & Step))
        swap_blocks<Step>(square[i], square[i + Step], std::make_integer_sequence<int, kLanes>());
    transpose_from<2 * Step>(square);
  }
}

// Columns [0, width) of `right` (depth rows) as rows of `vectors` vectors; anything behind them.
// Memory is asked for some rows or columns ahead.
void pack(View right, int64_t depth, int width, int vectors, float* panel) {
  const int stride = vectors * kLanes;
  int64_t k = 0;
  if (right.column == 1) {
    // What a row lacks is read from the next one, as long as there is one: nobody looks at it.
    const float* end = right.at(depth - 1, width);
    for (; k < depth && right.at(k, stride) <= end; ++k)
      for (int j = 0; j < stride; j += kLanes) {
        __builtin_prefetch(right.at(k + 2 * kLine, j));
        store(panel + k * stride + j, load(right.at(k, j)));
      }
  } else if (right.row == 1) {
    for (; k + kLanes <= depth; k += kLanes)
      for (int j = 0; j < stride; j += kLanes) {
        Vector square[kLanes];
        for (int i = 0; i < kLanes; ++i) {
          __builtin_prefetch(right.at(k + 4 * kLine, j + i));
          square[i] = j + i < width ? load(right.at(k, j + i)) : Vector{};
        }
        transpose_from<1>(square);
        for (int i = 0; i < kLanes; ++i) store(panel + (k + i) * stride + j, square[i]);
      }
  }
  for (; k < depth; ++k)
    for (int j = 0; j < stride; ++j) panel[k * stride + j] = j < width ? *right.at(k, j) : 0.0f;
}

// Memory for a panel, one for each thread and kept: it stays in the cache.
float* workspace(int64_t size) {
  struct Free {
    void operator()(float* data) const { ::operator delete[](data, std::align_val_t(64)); }
  };
  thread_local std::unique_ptr<float[], Free> kept;
  thread_local int64_t room = 0;
  if (room < size) {
    kept.reset(new (std::align_val_t(64)) float[size]);
    room = size;
  }
  return kept.get();
}

// Sums of the columns of a packed panel.
template <int Vectors>
void sum_columns(const float* panel, int64_t depth, int width, float* sums) {
  Vector sum[Vectors] = {};
  for (int64_t k = 0; k < depth; ++k)
    for (int j = 0; j < Vectors; ++j) sum[j] += load(panel + (k * Vectors + j) * kLanes);
  std::memcpy(sums, sum, width * sizeof(float));
}

// One product of an ensemble: (rows, depth) times (depth, columns).
struct Product {
  View left, right;
  int64_t rows, depth, columns;
  float* result;
  Finish finish;
  float* sums = nullptr;  // of the columns of `right`, if wanted
};

// A panel of a product: columns [column, column + width).
struct Panel {
  const Product* product;
  int64_t column;
  int width;

  View right() const {
    return {product->right.at(0, column), product->right.row, product->right.column};
  }

  // Asks for what the end of a tile touches.
  void ask_for_tile(int64_t first, int64_t height, Requests& requests) const {
    if (product->finish.rows) return;
    const int64_t offset = first * product->columns + column, lines = (width + kLine - 1) / kLine;
    if (product->finish.gate)
      requests.add({product->finish.gate + offset, product->columns, lines, height});
    requests.add({product->result + offset, product->columns, lines, height});
  }

  // Asks for a share of what packing this panel will read.
  void ask_for_share(int64_t share, int64_t shares, Requests& requests) const {
    const View view = right();
    const bool across = view.column == 1;
    const int64_t pieces = across ? product->depth : width;
    const int64_t length = across ? width : product->depth;
    const int64_t stride = across ? view.row : view.column;
    const int64_t begin = pieces * share / shares, end = pieces * (share + 1) / shares;
    requests.add({view.data + begin * stride, stride, (length + kLine - 1) / kLine, end - begin});
  }
};

template <int Vectors>
void compute(const Panel& work, const Panel* next) {
  const Product& product = *work.product;
  float* panel = workspace(product.depth * kMostVectors * kLanes);
  pack(work.right(), product.depth, work.width, Vectors, panel);
  if (product.sums)
    sum_columns<Vectors>(panel, product.depth, work.width, product.sums + work.column);
  // Tiles of equal height, give or take one row, and not full ones with a short rest.
  constexpr int most = most_rows(Vectors);
  const int64_t tiles = (product.rows + most - 1) / most;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t first = product.rows * i / tiles, height = product.rows * (i + 1) / tiles - first;
    Requests requests;
    work.ask_for_tile(first, height, requests);
    // A small product is done before the next panel's memory has come.
    const bool large = product.rows * product.depth >= 256 * 256;
    if (next && large) next->ask_for_share(i, tiles, requests);
    tile_of<Vectors>(height, std::make_integer_sequence<int, most>())(
        product.left, product.depth, panel, first, work.column, work.width,
        {product.result, product.columns}, product.finish, requests);
  }
}

// Rows a multiple of 4 KiB apart compete for one set of the first cache, which holds eight lines.
// Such left factors are copied to `memory`, with a gap between their rows.
void part_rows(std::vector<Product>& products, std::vector<std::vector<float>>& memory) {
  for (Product& product : products) {
    if (product.left.column != 1 || product.left.row % 1024 != 0) continue;
    const int64_t row = product.depth + kLine;
    std::vector<float>& copy = memory.emplace_back(product.rows * row);
    for (int64_t i = 0; i < product.rows; ++i)
      std::memcpy(copy.data() + i * row, product.left.at(i, 0), product.depth * sizeof(float));
    product.left = {copy.data(), row, 1};
  }
}

// All products, their panels shared out among the threads.
void multiply(std::vector<Product> products) {
  std::vector<std::vector<float>> memory;
  part_rows(products, memory);
  std::vector<Panel> work;
  int64_t flops = 0;
  for (const Product& product : products) {
    int64_t left = product.columns;
    while (left > 0) {
      const int64_t vectors = (left + kLanes - 1) / kLanes;
      const int64_t width = std::min<int64_t>(left, (vectors == 3 ? 3 : 2) * kLanes);
      work.push_back({&product, product.columns - left, static_cast<int>(width)});
      left -= width;
    }
    flops += 2 * product.rows * product.depth * product.columns;
  }
  const auto part = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Panel* next = i + 1 < end ? &work[i + 1] : nullptr;
      switch ((work[i].width + kLanes - 1) / kLanes) {
        case 1: compute<1>(work[i], next); break;
        case 2: compute<2>(work[i], next); break;
        default: compute<3>(work[i], next);
      }
    }
  };
  // Below a million operations a second thread takes longer to wake than it helps.
  const int64_t size = static_cast<int64_t>(work.size());
  torch::stable::parallel_for(0, size, flops < 1'000'000 ? size : 1, part);
}

}  // namespace
