#include <keel/optimizers/step/lazy_table.h>

#include <algorithm>
#include <numeric>

#include <keel/autodiff/internal/variable_storage.h>
#include <keel/framework/base/errors.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/embedding/prefetch_row.h>
#include <keel/framework/update_rule.h>
#include <keel/optimizers/step/summed_rows.h>

namespace keel {
namespace {

using kernels::kMostSlots;
using kernels::StaleRow;

constexpr int32_t kBusy = -1;        // the row is catching up
constexpr size_t kRowsAtOnce = 256;  // their values and slots fit the L2 cache
constexpr size_t kStepsAhead = 48;   // prefetch distance in rows

}  // namespace

LazyTable::LazyTable(std::shared_ptr<kernels::StepHistory> steps, const Variable& table)
    : steps_(std::move(steps)),
      table_(table),
      rows_(table.shape()[0]),
      dim_(row_size(table)),
      dtype_(table.dtype()),
      row_steps_tensor_(Tensor::zeros({rows_}, DType::kInt32)),
      row_steps_(row_steps_tensor_.mutable_data<int32_t>().data()),
      min_row_steps_(static_cast<int32_t>(steps_->size())),
      table_steps_(min_row_steps_) {}

void LazyTable::pack(const std::vector<Variable>& slots) {
  if (slots.size() > kMostSlots) {
    throw NotImplementedError("lazy_rows: optimizers have at most ", kMostSlots,
                              " slots, received ", slots.size(), "; use LazyRows::kOff");
  }
  const Variable table = table_.lock();
  if (VariableStorage(table).deferred_rows().get() != this) {
    VariableStorage(table).set_deferred_rows(shared_from_this());
    for (const Variable& slot : slots) VariableStorage(slot).set_deferred_rows(shared_from_this());
  }
  memory_ = packed_memory_of(table, slots);
}

void LazyTable::end_step(bool decays) {
  const int64_t step = steps_->size() - 1;
  // A table without deferred rows has not missed the steps of other tables since its last one.
  if (min_row_steps_ == table_steps_) {
    runs_.clear();
    min_row_steps_ = static_cast<int32_t>(step);
  }
  if (runs_.empty() || runs_.back().end != step || runs_.back().decays != decays) {
    runs_.push_back({.begin = step, .end = step, .decays = decays});
  }
  runs_.back().end = step + 1;
  table_steps_ = static_cast<int32_t>(step + 1);
}

bool LazyTable::is_stale(int64_t row) const {
  const int32_t steps = std::atomic_ref(row_steps_[row]).load(std::memory_order_acquire);
  return steps == kBusy ||
         std::max(steps, min_row_steps_.load(std::memory_order_acquire)) < table_steps_;
}

void LazyTable::step_rows(std::span<const int64_t> rows) {
  const int32_t min_row_steps = min_row_steps_.load(std::memory_order_acquire);
  const auto with_this = static_cast<int32_t>(steps_->size() + 1);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kStepsAhead < rows.size()) __builtin_prefetch(row_steps_ + rows[i + kStepsAhead], 1);
    int32_t& steps = row_steps_[rows[i]];
    make_steps(rows[i], std::max(steps, min_row_steps), table_steps_);
    steps = with_this;
  }
}

void LazyTable::make_steps(int64_t row, int64_t from, int64_t to) const {
  if (from >= to) return;
  // runs_ is ordered by step: find the first run that contains or follows `from`.
  const auto ends_before = [](int64_t step, const Run& run) { return step < run.end; };
  auto first = std::upper_bound(runs_.begin(), runs_.end(), from, ends_before);
  for (const Run& run : std::span(first, runs_.end())) {
    if (run.begin >= to) return;
    const Run part = {std::max(from, run.begin), std::min(to, run.end), run.decays};
    dtype_ == DType::kFloat64 ? make_steps_of<double>(row, part) : make_steps_of<float>(row, part);
  }
}

template <class T>
void LazyTable::make_steps_of(int64_t row, const Run& run) const {
  std::array<T*, kMostSlots> slots = {};
  const int64_t at = row * memory_.row_step;
  for (size_t s = 0; s < memory_.slots.size(); ++s)
    slots[s] = static_cast<T*>(memory_.slots[s]) + at;
  steps_->catch_up(static_cast<T*>(memory_.values) + at, slots.data(), dim_, run.begin, run.end,
                   run.decays);
}

// Locks whole stripes of rows. A lock per row would force each row to finish before the next one
// starts, so rows could not be prefetched.
void LazyTable::materialize(std::span<const int64_t> ids) {
  if (min_row_steps_ == table_steps_ || dim_ == 0) return;
  const auto found =
      std::ranges::find_if(ids, [&](int64_t id) { return is_row(id) && is_stale(id); });
  ids = ids.subspan(found - ids.begin());
  if (ids.empty()) return;
  if (std::ssize(ids) <= kRowsOfStripe || parallel_runs_in_place()) {
    std::array<std::unique_lock<std::mutex>, kStripes> locks;
    for (size_t s = 0; s < kStripes; ++s) locks[s] = std::unique_lock(stripes_[s]);
    catch_up_rows(ids);
    return;
  }
  const ByStripe of = by_stripe(ids);
  parallel_for(kStripes, 1, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      const std::lock_guard lock(stripes_[s]);
      catch_up_rows(std::span(of.ids).subspan(of.starts[s], of.starts[s + 1] - of.starts[s]));
    }
  });
}

LazyTable::ByStripe LazyTable::by_stripe(std::span<const int64_t> ids) {
  ByStripe out;
  for (const int64_t id : ids) ++out.starts[stripe_of(id) + 1];
  std::partial_sum(out.starts.begin(), out.starts.end(), out.starts.begin());
  out.ids.resize(ids.size());
  std::array<size_t, kStripes + 1> next = out.starts;
  for (const int64_t id : ids) out.ids[next[stripe_of(id)]++] = id;
  return out;
}

// Prefetches the memory that a row needs to catch up: its values and slots, which are interleaved,
// and the history.
void LazyTable::prefetch(const StaleRow& row) const {
  const auto bytes = static_cast<int64_t>(size_of(dtype_)) * memory_.row_step;
  kernels::prefetch_row_to_write(static_cast<const char*>(memory_.values) + row.row * bytes, bytes);
  dtype_ == DType::kFloat64 ? steps_->prefetch<double>(row.steps, runs_.back().decays)
                            : steps_->prefetch<float>(row.steps, runs_.back().decays);
}

// The caller holds the locks of the rows' stripes. First prefetches up to kRowsAtOnce rows, then
// applies their steps: alternating the two for each row would keep fewer memory requests in flight.
void LazyTable::catch_up_rows(std::span<const int64_t> ids) {
  std::array<StaleRow, kRowsAtOnce> batch;
  size_t n = 0;
  const auto finish = [&] {
    make_steps({batch.data(), n});
    for (size_t i = 0; i < n; ++i) {
      std::atomic_ref(row_steps_[batch[i].row]).store(table_steps_, std::memory_order_release);
    }
    n = 0;
  };
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t far = ids[std::min(i + kStepsAhead, ids.size() - 1)];
    if (is_row(far)) __builtin_prefetch(row_steps_ + far, 1);
    if (!is_row(ids[i])) continue;
    std::atomic_ref steps(row_steps_[ids[i]]);
    const int32_t before = steps.load(std::memory_order_relaxed);
    const int32_t from = std::max(before, min_row_steps_.load(std::memory_order_relaxed));
    if (before == kBusy || from >= table_steps_)
      continue;  // the id is repeated, or the row is up to date
    steps.store(kBusy, std::memory_order_relaxed);
    batch[n] = {.row = ids[i], .steps = from};
    prefetch(batch[n++]);
    if (n == batch.size()) finish();
  }
  finish();
}

// Applies the missed steps to at most kRowsAtOnce rows. Whether a row is handled alone or in the
// batch must depend on that row only, because the other rows of the batch vary with the number of
// workers, and the results must not.
void LazyTable::make_steps(Rows rows) const {
  const Run& last = runs_.back();
  const bool all_are_known = table_steps_ == steps_->size() && last.end == table_steps_;
  std::array<StaleRow, kRowsAtOnce> batch;
  size_t n = 0;
  for (const StaleRow& row : rows) {
    if (all_are_known && row.steps >= last.begin) {
      batch[n++] = row;
    } else {
      make_steps(row.row, row.steps, table_steps_);
    }
  }
  const Rows batch_rows(batch.data(), n);
  dtype_ == DType::kFloat64 ? make_steps_of<double>(batch_rows) : make_steps_of<float>(batch_rows);
}

template <class T>
void LazyTable::make_steps_of(Rows rows) const {
  std::array<T*, kMostSlots> slots = {};
  for (size_t s = 0; s < memory_.slots.size(); ++s) slots[s] = static_cast<T*>(memory_.slots[s]);
  steps_->catch_up_rows(kernels::StaleRows<T>{.values = static_cast<T*>(memory_.values),
                                              .slots = {slots.data(), memory_.slots.size()},
                                              .dim = dim_,
                                              .row_step = memory_.row_step,
                                              .rows = rows},
                        runs_.back().decays);
}

void LazyTable::materialize_all() {
  if (min_row_steps_ == table_steps_) return;
  if (dim_ > 0) {
    parallel_for(rows_, kRowsOfStripe, [&](int64_t begin, int64_t end) {
      std::array<int64_t, kRowsOfStripe> rows;
      std::iota(rows.begin(), rows.begin() + (end - begin), begin);
      const std::lock_guard lock(stripes_[stripe_of(begin)]);
      catch_up_rows({rows.data(), static_cast<size_t>(end - begin)});
    });
  }
  min_row_steps_ = table_steps_;
}

void LazyTable::materialize_slots() {
  if (!memory_.slots.empty()) materialize_all();
}

LazyTables::LazyTables(const std::string& caller, std::shared_ptr<const UpdateRule> rule,
                       bool closed_form)
    : steps_(std::make_shared<kernels::StepHistory>(
          caller, std::move(rule), kernels::StepHistoryOptions{.closed_form = closed_form})) {}

void LazyTables::pack(const std::vector<SteppedTable>& tables) {
  for (const SteppedTable& s : tables) {
    auto found = tables_.find(s.table.id());
    if (found == tables_.end()) {
      auto table = std::make_shared<LazyTable>(steps_, s.table);
      found = tables_.emplace(s.table.id(), std::move(table)).first;
    }
    found->second->pack(s.slots);
  }
}

void LazyTables::end_step(const Step& step, double decay, const std::vector<SteppedTable>& tables) {
  if (tables.empty()) return;
  drop_expired_tables();
  // Without deferred rows the history is not needed; keeping it would let it grow during the whole
  // run.
  const auto defers = [](const auto& table) { return table.second->has_deferred_rows(); };
  if (std::ranges::none_of(tables_, defers)) steps_->clear();
  for (const SteppedTable& s : tables) {
    s.table.dtype() == DType::kFloat64 ? steps_->expect<double>(s.decays)
                                       : steps_->expect<float>(s.decays);
  }
  steps_->add(step, decay);
  for (const SteppedTable& s : tables) find(s.table)->end_step(s.decays);
}

// Deferred rows of a destroyed table would keep the history alive.
void LazyTables::drop_expired_tables() {
  std::erase_if(tables_, [](const auto& table) {
    if (table.second->has_table()) return false;
    table.second->materialize_slots();
    return true;
  });
}

bool LazyTables::owns_deferred_rows(const Variable& table) const {
  const auto found = tables_.find(table.id());
  return found != tables_.end() && VariableStorage(table).deferred_rows() == found->second;
}

LazyTable* LazyTables::find(const Variable& table) const { return tables_.at(table.id()).get(); }

}  // namespace keel
