#include <optional>
#include <variant>

#include <keel/framework/base/parallel.h>
#include <keel/optimizers/step/gradient_clipping.h>
#include <keel/optimizers/step/optimizer_slots.h>
#include <keel/optimizers/step/optimizer_step.h>
#include <keel/optimizers/step/summed_rows.h>

namespace keel {
namespace {

template <class T>
VariableUpdate<T> update_of(const StepPlan& plan, const UpdateRule& rule, const StepVariable& v) {
  return VariableUpdate<T>(plan, rule, v.memory, v.weight_decay);
}

// The rules whose steps need all gradients of a variable first.
enum class BufferedRule { kNone, kLayerwise, kWholeVariable };

BufferedRule buffered_rule(const UpdateRule& rule) {
  if (dynamic_cast<const LayerwiseRule*>(&rule) != nullptr) return BufferedRule::kLayerwise;
  if (dynamic_cast<const WholeVariableRule*>(&rule) != nullptr) return BufferedRule::kWholeVariable;
  return BufferedRule::kNone;
}

template <class T>
void run(const VariableUpdate<T>& update, const StepVariable& v) {
  const int64_t dim = row_size(v.variable);
  if (dim == 0) return;
  if (v.form == GradientKind::kRows) {
    SummedRows<T> rows = sum_by_id<T>(v.gradient.slices(), dim);
    // A lazy table must get the bits that a dense gradient gives (LazyRows::kReplay).
    if (v.lazy != nullptr) add_to_zeros<T>(rows.values);
    unscale<T>(update.plan(), rows.values);
    change_rows(update, rows.ids, rows.values.data(), dim, v.lazy);
    return;
  }
  const Tensor dense = v.gradient.dense();
  const T* values = dense.data<T>().data();
  parallel_for(dense.size(), kUpdateGrain, [&](int64_t begin, int64_t end) {
    VariableUpdate<T> own = update;  // it holds the slot pointers of the current piece
    own(begin, values + begin, end - begin);
  });
}

// The gradient of a variable, kept until the norms of all gradients are known.
template <class T>
struct BufferedGradient {
  BufferedGradient(const StepPlan& plan, const UpdateRule& rule, const StepVariable& v)
      : dim(row_size(v.variable)),
        update(update_of<T>(plan, rule, v)),
        dense(update),
        lazy(v.lazy),
        info(info_of(v.variable)) {
    if (v.form == GradientKind::kRows) {
      rows = sum_by_id<T>(v.gradient.slices(), dim);
      if (lazy != nullptr) add_to_zeros<T>(rows->values);
      unscale<T>(plan, rows->values);
    } else {
      const Tensor gradient = v.gradient.dense();
      dense.take_all(gradient.data<T>().data(), gradient.size());
    }
  }

  double squares() {
    if (!rows) return dense.squares();
    return squares_of<T>(rows->values);
  }

  void finish(double factor, BufferedRule kind) {
    if (rows) {
      if (dim == 0) return;
      scale<T>(rows->values, factor);
      change_rows(update, rows->ids, rows->values.data(), dim, lazy);
      return;
    }
    dense.scale(factor);
    if (kind == BufferedRule::kLayerwise) {
      const SumsOfSquares sums = dense.direct();
      dense.move(LayerwiseRule::ratio(sums.values, sums.directions));
    } else if (kind == BufferedRule::kWholeVariable) {
      dense.finish_variable(info);
    } else {
      dense.finish();
    }
  }

  int64_t dim;
  VariableUpdate<T> update;
  BufferedUpdate<T> dense;
  LazyTable* lazy;
  VariableInfo info;
  std::optional<SummedRows<T>> rows;
};

// Reads all gradients before any variable changes, because the factors of clipnorm and
// global_clipnorm depend on whole gradients.
void step_buffered(const StepPlan& plan, const UpdateRule& rule,
                   const std::vector<StepVariable>& variables, BufferedRule kind) {
  std::vector<std::variant<BufferedGradient<float>, BufferedGradient<double>>> all;
  std::vector<double> squares;
  for (const StepVariable& v : variables) {
    if (v.variable.dtype() == DType::kFloat64) {
      all.emplace_back(BufferedGradient<double>(plan, rule, v));
    } else {
      all.emplace_back(BufferedGradient<float>(plan, rule, v));
    }
    if (clips_by_norm(plan)) {
      squares.push_back(std::visit([](auto& buffered) { return buffered.squares(); }, all.back()));
    }
  }
  squares.resize(all.size());
  const std::vector<double> factors = clip_factors(plan, squares);
  for (size_t i = 0; i < all.size(); ++i) {
    std::visit([&](auto& buffered) { buffered.finish(factors[i], kind); }, all[i]);
  }
}

}  // namespace

void step_local(const StepPlan& plan, const UpdateRule& rule,
                const std::vector<StepVariable>& variables) {
  const BufferedRule kind = plan.updates ? buffered_rule(rule) : BufferedRule::kNone;
  if (kind != BufferedRule::kNone || clips_by_norm(plan)) {
    return step_buffered(plan, rule, variables, kind);
  }
  for (const StepVariable& v : variables) {
    if (v.variable.dtype() == DType::kFloat64) {
      run(update_of<double>(plan, rule, v), v);
    } else {
      run(update_of<float>(plan, rule, v), v);
    }
  }
}

}  // namespace keel
