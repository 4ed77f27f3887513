// Eigen, a library of templates: dense and sparse algebra whose matrices are managed.
#include <Eigen/Dense>
#include <Eigen/Sparse>
#include <bit>
#include <vector>

#include "parts.h"
#include "print.h"

namespace {

template <class Derived>
void print_matrix(const char* name, const Eigen::MatrixBase<Derived>& matrix) {
  uint64_t sum = 0;
  for (Eigen::Index j = 0; j < matrix.cols(); ++j)
    for (Eigen::Index i = 0; i < matrix.rows(); ++i) sum = mix(sum, std::bit_cast<uint64_t>(matrix(i, j)));
  print_sum(name, sum);
}

Eigen::MatrixXd numbers(Eigen::Index rows, Eigen::Index columns, uint64_t seed) {
  Eigen::MatrixXd matrix(rows, columns);
  for (Eigen::Index j = 0; j < columns; ++j)
    for (Eigen::Index i = 0; i < rows; ++i)
      matrix(i, j) = static_cast<double>(next_random(&seed) % 2001) / 1000 - 1;
  return matrix;
}

int dense(long) {
  constexpr Eigen::Index kRows = 500;
  const Eigen::MatrixXd a = numbers(kRows, kRows, 1), b = numbers(kRows, kRows, 2);
  const Eigen::MatrixXd product = a * b;
  print_matrix("product", product);
  print_matrix("transposed", (a.transpose() + b).block(3, 5, 300, 301).eval());
  const Eigen::MatrixXd right = b.leftCols(40);
  print_matrix("solution", a.partialPivLu().solve(right).eval());
  const Eigen::HouseholderQR<Eigen::MatrixXd> factors(a.leftCols(200));
  print_matrix("triangle", Eigen::MatrixXd(factors.matrixQR().topRows(200)));
  return 0;
}

// The equation of heat on a square grid.
Eigen::SparseMatrix<double> grid(int side) {
  std::vector<Eigen::Triplet<double>> entries;
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x) {
      const int here = y * side + x;
      entries.emplace_back(here, here, 4.5);
      if (x > 0) entries.emplace_back(here, here - 1, -1);
      if (x + 1 < side) entries.emplace_back(here, here + 1, -1);
      if (y > 0) entries.emplace_back(here, here - side, -1);
      if (y + 1 < side) entries.emplace_back(here, here + side, -1);
    }
  Eigen::SparseMatrix<double> matrix(side * side, side * side);
  matrix.setFromTriplets(entries.begin(), entries.end());
  return matrix;
}

int sparse(long) {
  constexpr int kSide = 140;
  const Eigen::SparseMatrix<double> matrix = grid(kSide);
  const Eigen::VectorXd right = numbers(kSide * kSide, 1, 3);
  const Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>> factors(matrix);
  print_matrix("direct", factors.solve(right).eval());
  Eigen::ConjugateGradient<Eigen::SparseMatrix<double>> iterative(matrix);
  iterative.setMaxIterations(60);
  print_matrix("iterative", iterative.solve(right).eval());
  printf("after %d iterations\n", static_cast<int>(iterative.iterations()));
  return 0;
}

constexpr Part kParts[] = {{"dense", dense}, {"sparse", sparse}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
