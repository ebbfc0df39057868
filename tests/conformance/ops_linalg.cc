#include <limits>

#include "tests/conformance/ops_arguments.h"

namespace keel::conformance {
namespace {

namespace K = keras_ops;
using Results = std::vector<Tensor>;

Results both(const std::pair<Tensor, Tensor>& pair) { return {pair.first, pair.second}; }

OpAdapter matrix(Tensor (*f)(const Tensor&)) {
  return [f](OpArguments& a) -> Results { return {f(a.tensor("x"))}; };
}
OpAdapter product(Tensor (*f)(const Tensor&, const Tensor&)) {
  return [f](OpArguments& a) -> Results { return {f(a.tensor("x1"), a.tensor("x2"))}; };
}
OpAdapter product(Tensor (*f)(const K::Operand&, const K::Operand&)) {
  return [f](OpArguments& a) -> Results { return {f(a.operand("x1"), a.operand("x2"))}; };
}
OpAdapter transform(K::Complex (*f)(const K::Complex&)) {
  return [f](OpArguments& a) { return both(f(a.complex("x"))); };
}

Results tensordot(OpArguments& a) {
  const Config& axes = a.config("axes");
  if (axes.is_number()) {
    return {K::tensordot(a.tensor("x1"), a.tensor("x2"), static_cast<int>(axes.integer()))};
  }
  std::vector<std::vector<int>> lists;
  for (const Config& list : axes.items()) {
    lists.emplace_back();
    for (const Config& axis : list.items())
      lists.back().push_back(static_cast<int>(axis.integer()));
  }
  return {K::tensordot(a.tensor("x1"), a.tensor("x2"), {lists.at(0), lists.at(1)})};
}
Results cross(OpArguments& a) {
  const auto number = [&](const char* name) { return static_cast<int>(a.integer(name, -1)); };
  return {K::cross(a.tensor("x1"), a.tensor("x2"), number("axisa"), number("axisb"),
                   number("axisc"), a.axis())};
}
Results svd(OpArguments& a) {
  const bool full = a.boolean("full_matrices", true);
  if (!a.boolean("compute_uv", true)) return {K::singular_values(a.tensor("x"))};
  const K::Svd found = K::svd(a.tensor("x"), full);
  return {found.u, found.s, found.vh};
}
K::NormOrder order_of(OpArguments& a) {
  const Config& order = a.config("ord");
  if (order.is_null()) return {};
  if (order.is_number()) return order.number();
  const double infinity = std::numeric_limits<double>::infinity();
  if (order.string() == "inf") return infinity;
  if (order.string() == "-inf") return -infinity;
  return order.string();
}
Results norm(OpArguments& a) {
  return {K::norm(a.tensor("x"), order_of(a), a.axes(), a.boolean("keepdims", false))};
}
K::SignalWindow window_of(OpArguments& a, const Config& window) {
  if (window.is_string()) return window.string();
  return a.has("window") ? K::SignalWindow(a.tensor("window")) : K::SignalWindow(std::nullopt);
}
// A window that is null stands for none; one that is absent is the default.
K::SignalWindow window_of(OpArguments& a) {
  const Config& window = a.config("window");
  if (window.is_null() && !a.names("window")) return "hann";
  return window_of(a, window);
}
Results stft(OpArguments& a) {
  return both(K::stft(a.tensor("x"), a.integer("sequence_length", 0),
                      a.integer("sequence_stride", 0), a.integer("fft_length", 0), window_of(a),
                      a.boolean("center", true)));
}
Results istft(OpArguments& a) {
  return {K::istft(a.complex("x"), a.integer("sequence_length", 0), a.integer("sequence_stride", 0),
                   a.integer("fft_length", 0), a.maybe_integer("length"), window_of(a),
                   a.boolean("center", true))};
}

// The values in decreasing order of their real parts; Keras's order is not defined.
Results eig(OpArguments& a) {
  const auto [values, vectors] = K::eig(a.tensor("x"));
  const Tensor order = K::flip(K::argsort(values.first, -1), -1);
  const auto sorted = [&](const Tensor& x) { return K::take(x, order, -1); };
  return {K::view_as_real({sorted(values.first), sorted(values.second)}),
          K::view_as_real({sorted(vectors.first), sorted(vectors.second)})};
}

OpAdapters product_adapters() {
  return {{"matmul", product(K::matmul)},
          {"dot", product(K::dot)},
          {"inner", product(K::inner)},
          {"outer", product(K::outer)},
          {"vdot", product(K::vdot)},
          {"tensordot", tensordot},
          {"einsum",
           [](OpArguments& a) -> Results {
             return {K::einsum(a.string("subscripts", ""), a.tensors("operands"))};
           }},
          {"kron", product(K::kron)},
          {"cross", cross},
          {"correlate",
           [](OpArguments& a) -> Results {
             return {K::correlate(a.tensor("x1"), a.tensor("x2"), a.string("mode", "valid"))};
           }},
          {"corrcoef", matrix(K::corrcoef)},
          {"cdist",
           [](OpArguments& a) -> Results { return {K::cdist(a.tensor("x"), a.tensor("y"))}; }}};
}

OpAdapters factor_adapters() {
  return {
      {"cholesky",
       [](OpArguments& a) -> Results {
         return {K::cholesky(a.tensor("x"), a.boolean("upper", false))};
       }},
      {"cholesky_inverse",
       [](OpArguments& a) -> Results {
         return {K::cholesky_inverse(a.tensor("x"), a.boolean("upper", false))};
       }},
      {"qr",
       [](OpArguments& a) { return both(K::qr(a.tensor("x"), a.string("mode", "reduced"))); }},
      {"svd", svd},
      {"eig", eig},
      {"polar",
       [](OpArguments& a) -> Results {
         return {K::view_as_real(K::polar(a.tensor("abs_"), a.tensor("angle")))};
       }},
      {"view_as_complex",
       [](OpArguments& a) -> Results {
         return {K::view_as_real(K::view_as_complex(a.tensor("x")))};
       }},
      {"view_as_real", [](OpArguments& a) -> Results { return {K::view_as_real(a.complex("x"))}; }},
      {"eigh", [](OpArguments& a) { return both(K::eigh(a.tensor("x"))); }},
      {"lu_factor", [](OpArguments& a) { return both(K::lu_factor(a.tensor("x"))); }},
      {"det", matrix(K::det)},
      {"slogdet", [](OpArguments& a) { return both(K::slogdet(a.tensor("x"))); }},
      {"logdet", matrix(K::logdet)},
      {"inv", matrix(K::inv)},
      {"solve", [](OpArguments& a) -> Results { return {K::solve(a.tensor("a"), a.tensor("b"))}; }},
      {"solve_triangular",
       [](OpArguments& a) -> Results {
         return {K::solve_triangular(a.tensor("a"), a.tensor("b"), a.boolean("lower", false))};
       }},
      {"pinv",
       [](OpArguments& a) -> Results { return {K::pinv(a.tensor("x"), a.maybe_number("rcond"))}; }},
      {"lstsq",
       [](OpArguments& a) -> Results {
         return {K::lstsq(a.tensor("a"), a.tensor("b"), a.maybe_number("rcond"))};
       }},
      {"matrix_power",
       [](OpArguments& a) -> Results {
         return {K::matrix_power(a.tensor("x"), a.integer("n", 0))};
       }},
      {"matrix_rank",
       [](OpArguments& a) -> Results {
         return {K::matrix_rank(a.tensor("x"), a.maybe_number("tol"))};
       }},
      {"norm", norm}};
}

OpAdapters signal_adapters() {
  return {
      {"fft", transform(K::fft)},
      {"fft2", transform(K::fft2)},
      {"ifft2", transform(K::ifft2)},
      {"rfft",
       [](OpArguments& a) { return both(K::rfft(a.tensor("x"), a.maybe_integer("fft_length"))); }},
      {"irfft",
       [](OpArguments& a) -> Results {
         return {K::irfft(a.complex("x"), a.maybe_integer("fft_length"))};
       }},
      {"stft", stft},
      {"istft", istft},
      {"extract_sequences", [](OpArguments& a) -> Results {
         return {K::extract_sequences(a.tensor("x"), a.integer("sequence_length", 0),
                                      a.integer("sequence_stride", 0))};
       }}};
}

}  // namespace

OpAdapters linalg_adapters() {
  OpAdapters out = product_adapters();
  out.merge(factor_adapters());
  out.merge(signal_adapters());
  return out;
}

}  // namespace keel::conformance
