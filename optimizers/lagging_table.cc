#include "optimizers/lagging_table.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <thread>

#include "framework/errors.h"
#include "framework/parallel.h"
#include "optimizers/summed_rows.h"

namespace keel {
namespace {

constexpr int32_t kBusy = -1;         // somebody brings the row up to date
constexpr int64_t kRowsAtOnce = 256;  // of one worker
constexpr size_t kMostSlots = 8;
constexpr int64_t kLookAhead = 16;  // rows

// What a slot asks before it is looked at.
class RowsOfSlot final : public WaitingRows {
 public:
  explicit RowsOfSlot(std::weak_ptr<LaggingTable> table) : table_(std::move(table)) {}
  void bring_up(std::span<const int64_t> ids) override {
    if (const auto table = table_.lock()) table->bring_up(ids);
  }
  void bring_up_all() override {
    if (const auto table = table_.lock()) table->bring_up_all();
  }

 private:
  const std::weak_ptr<LaggingTable> table_;  // which keeps the slot
};

// Zeros that take no memory before they are written.
std::unique_ptr<int32_t[], void (*)(void*)> zeros(int64_t n) {
  auto* const made = static_cast<int32_t*>(std::calloc(std::max<int64_t>(n, 1), sizeof(int32_t)));
  if (made == nullptr) throw std::bad_alloc();
  return {made, std::free};
}

void* elements_of(const Variable& variable) {
  return variable.dtype() == DType::kFloat64
             ? static_cast<void*>(variable.elements<double>().data())
             : variable.elements<float>().data();
}

}  // namespace

LaggingTable::LaggingTable(std::shared_ptr<kernels::SkippedSteps> steps, const Variable& table,
                           std::vector<Variable> slots)
    : steps_(std::move(steps)),
      table_(table),
      slots_(std::move(slots)),
      rows_(table.shape()[0]),
      dim_(row_size(table)),
      dtype_(table.dtype()),
      had_(zeros(rows_)),
      all_had_(static_cast<int32_t>(steps_->size())),
      due_(all_had_) {
  if (slots_.size() > kMostSlots) {
    throw NotImplementedError("lazy_rows: optimizers have at most ", kMostSlots,
                              " slots, received ", slots_.size());
  }
}

// From now on the table asks here.
void LaggingTable::take_part() {
  const Variable table = table_.lock();
  if (table.waiting_rows().get() == this) return;
  table.bring_up_all();
  table.set_waiting_rows(shared_from_this());
  for (const Variable& slot : slots_) {
    slot.set_waiting_rows(std::make_shared<RowsOfSlot>(weak_from_this()));
  }
}

void LaggingTable::begin_step(bool decays) {
  take_part();
  const int64_t step = steps_->size() - 1;
  // Without rows that wait, steps of others are none of this table's.
  if (all_had_ == due_) {
    runs_.clear();
    all_had_ = static_cast<int32_t>(step);
  }
  if (runs_.empty() || runs_.back().end != step || runs_.back().decays != decays) {
    runs_.push_back({.begin = step, .end = step, .decays = decays});
  }
  runs_.back().end = step + 1;
  due_ = static_cast<int32_t>(step + 1);
  values_ = elements_of(table_.lock());
  slot_values_.clear();
  for (const Variable& slot : slots_) slot_values_.push_back(elements_of(slot));
}

bool LaggingTable::is_behind(int64_t row) const {
  const int32_t had = std::atomic_ref(had_[row]).load(std::memory_order_acquire);
  return had == kBusy || std::max(had, all_had_.load(std::memory_order_acquire)) < due_;
}

// What a row is about to be needed for.
void LaggingTable::fetch(int64_t row) const {
  constexpr int64_t kLine = 64, kMostLines = 8;
  const auto size = static_cast<int64_t>(size_of(dtype_)) * dim_;
  const int64_t lines = std::min(kMostLines, (size + kLine - 1) / kLine);
  const auto of = [&](const void* values) {
    const char* const at = static_cast<const char*>(values) + row * size;
    for (int64_t line = 0; line < lines; ++line) __builtin_prefetch(at + line * kLine, 1);
  };
  of(values_);
  for (const void* slot : slot_values_) of(slot);
}

void LaggingTable::step_rows(std::span<const int64_t> rows) {
  const auto end = std::ssize(rows);
  for (int64_t i = 0; i < end; ++i) {
    if (i + kLookAhead < end) __builtin_prefetch(had_.get() + rows[i + kLookAhead], 1);
    if (i + kLookAhead / 2 < end) fetch(rows[i + kLookAhead / 2]);
    int32_t& had = had_[rows[i]];
    make_steps(rows[i], std::max(had, all_had_.load(std::memory_order_acquire)), due_ - 1);
    had = due_;
  }
}

void LaggingTable::catch_up(int64_t row) {
  std::atomic_ref had(had_[row]);
  int32_t from = had.load(std::memory_order_acquire);
  while (true) {
    if (from == kBusy) {
      std::this_thread::yield();
      from = had.load(std::memory_order_acquire);
    } else if (std::max(from, all_had_.load(std::memory_order_acquire)) >= due_) {
      return;
    } else if (had.compare_exchange_weak(from, kBusy, std::memory_order_acquire)) {
      break;
    }
  }
  make_steps(row, std::max(from, all_had_.load(std::memory_order_acquire)), due_);
  had.store(due_, std::memory_order_release);
}

void LaggingTable::make_steps(int64_t row, int64_t from, int64_t to) const {
  if (from >= to) return;
  const auto ends_before = [](int64_t step, const Run& run) { return step < run.end; };
  auto first = std::upper_bound(runs_.begin(), runs_.end(), from, ends_before);
  for (const Run& run : std::span(first, runs_.end())) {
    if (run.begin >= to) return;
    const Run part = {std::max(from, run.begin), std::min(to, run.end), run.decays};
    dtype_ == DType::kFloat64 ? make_steps_of<double>(row, part) : make_steps_of<float>(row, part);
  }
}

template <class T>
void LaggingTable::make_steps_of(int64_t row, const Run& run) const {
  std::array<T*, kMostSlots> slots = {};
  for (size_t s = 0; s < slot_values_.size(); ++s) {
    slots[s] = static_cast<T*>(slot_values_[s]) + row * dim_;
  }
  steps_->catch_up(static_cast<T*>(values_) + row * dim_, slots.data(), dim_, run.begin, run.end,
                   run.decays);
}

void LaggingTable::bring_up(std::span<const int64_t> ids) {
  const Variable table = table_.lock();
  if (!table || all_had_ == due_ || dim_ == 0) return;
  const auto size = static_cast<int64_t>(ids.size());
  parallel_for(size, kRowsAtOnce, [&](int64_t begin, int64_t end) {
    const auto is_row = [&](int64_t id) { return id >= 0 && id < rows_; };
    for (int64_t i = begin; i < end; ++i) {
      const int64_t far = std::min(i + kLookAhead, end - 1);
      const int64_t near = std::min(i + kLookAhead / 2, end - 1);
      if (is_row(ids[far])) __builtin_prefetch(had_.get() + ids[far], 1);
      if (is_row(ids[near]) && is_behind(ids[near])) fetch(ids[near]);
      if (is_row(ids[i]) && is_behind(ids[i])) catch_up(ids[i]);
    }
  });
}

void LaggingTable::bring_up_all() {
  const Variable table = table_.lock();
  if (!table || all_had_ == due_) return;
  if (dim_ > 0) {
    parallel_for(rows_, kRowsAtOnce, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) catch_up(row);
    });
  }
  all_had_ = due_;
}

LaggingTables::LaggingTables(const std::string& who, std::shared_ptr<const UpdateRule> rule,
                             bool closed_form)
    : steps_(std::make_shared<kernels::SkippedSteps>(
          who, std::move(rule), kernels::SkippedStepsOptions{.closed_form = closed_form})) {}

void LaggingTables::begin_step(const Step& step, double decay, const std::vector<Stepped>& tables) {
  if (tables.empty()) return;
  for (const Stepped& s : tables) {
    s.table.dtype() == DType::kFloat64 ? steps_->expect<double>(s.decays)
                                       : steps_->expect<float>(s.decays);
    std::shared_ptr<LaggingTable>& table = tables_[s.table.id()];
    if (table == nullptr) table = std::make_shared<LaggingTable>(steps_, s.table, s.slots);
  }
  steps_->add(step, decay);
  for (const Stepped& s : tables) find(s.table)->begin_step(s.decays);
}

LaggingTable* LaggingTables::find(const Variable& table) const {
  return tables_.at(table.id()).get();
}

}  // namespace keel
