// The rows of a sparse gradient, and what a step does to them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <keel/distribute/embedding/internal/row_exchange.h>
#include <keel/framework/indexed_slices.h>
#include <keel/framework/kernels/scratch.h>
#include <keel/optimizers/step/lazy_table.h>
#include <keel/optimizers/step/variable_update.h>

namespace keel {

template <class T>
struct SummedRows {
  kernels::ScratchVector<int64_t> ids;  // each once
  kernels::ScratchVector<T> values;     // ids.size() rows
};

// By id, in the order of their places.
template <class T>
SummedRows<T> sum_by_id(const IndexedSlices& slices, int64_t dim);

// Divides by the loss scale.
template <class T>
void unscale(const StepPlan& plan, std::span<T> values);

// Changes row ids[i] by row i of `values`, by several workers; writes to them. Rows of a lazy
// table first get what they missed.
template <class T>
void change_rows(const VariableUpdate<T>& update, std::span<const int64_t> ids, T* values,
                 int64_t dim, LazyTable* lazy = nullptr);

// Makes of sums by id what the dense gradient would have: it adds them to zeros.
template <class T>
void add_to_zeros(std::span<T> values);

// As sum_rows_to_owners, in the order in which Communicator::reduce_scatter sums dense gradients:
// bit for bit the rows of those.
std::vector<distribute::OwnedRows> sum_rows_as_dense(
    distribute::Communicator& communicator, std::span<const distribute::OutgoingRows> tables);
}  // namespace keel
