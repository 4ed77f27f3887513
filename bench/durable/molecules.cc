// Forces between all pairs of a cell's molecules, added up where they
// are kept: the loop nest of SPLASH's water-nsquared.
//
// A molecule is a line: position, force, charge, velocity left to others. A section is one
// cell: 28 molecules, 378 pairs, six stores each to two molecules, of which one stays while
// the other goes over the rest. A table of eight lines gives each of them up before it
// comes again; a cache of 28 holds them all (the paper's SC chose 28 for water-nsquared).
// size: cells. rounds: steps; molecules stand still, so that each step's forces are the same.
#include <cmath>

#include "durable/workload.h"

namespace spw::bench {

namespace {

constexpr uint64_t kOfCell = 28;

struct alignas(64) Molecule {
  double position[3];
  double charge;
  double force[3];
};

struct Cell {
  Molecule molecules[kOfCell];
};

void add_forces(Molecule& a, Molecule& b) {
  double away[3];
  double square = 0.01;
  for (unsigned axis = 0; axis < 3; ++axis) {
    away[axis] = a.position[axis] - b.position[axis];
    square += away[axis] * away[axis];
  }
  const double strength = a.charge * b.charge / (square * std::sqrt(square));
  for (unsigned axis = 0; axis < 3; ++axis) {
    store(a.force[axis], a.force[axis] + away[axis] * strength);
    store(b.force[axis], b.force[axis] - away[axis] * strength);
  }
}

void update(Cell& cell) {
  Section section;
  for (Molecule& molecule : cell.molecules)
    for (double& force : molecule.force) store(force, 0.0);
  for (uint64_t i = 0; i < kOfCell; ++i)
    for (uint64_t j = i + 1; j < kOfCell; ++j) add_forces(cell.molecules[i], cell.molecules[j]);
}

// What one loses another gains.
void check(const Cell& cell) {
  for (unsigned axis = 0; axis < 3; ++axis) {
    double sum = 0, largest = 0;
    for (const Molecule& molecule : cell.molecules) {
      sum += molecule.force[axis];
      largest = std::max(largest, std::abs(molecule.force[axis]));
    }
    if (!(largest > 0) || std::abs(sum) > 1e-9 * largest) die("forces do not cancel out");
  }
}

}  // namespace

void run_molecules(Run& run) {
  auto* cells = static_cast<Cell*>(run.allocate(run.size * sizeof(Cell)));
  uint64_t random = 1;
  const auto next = [&random] {
    random = random * 0x5851F42D4C957F2Du + 0x14057B7EF767814Fu;
    return static_cast<double>(random >> 40) / static_cast<double>(1 << 24);
  };
  for (uint64_t i = 0; i < run.size; ++i) {
    Section section;
    for (Molecule& molecule : cells[i].molecules) {
      for (double& coordinate : molecule.position) store(coordinate, next());
      store(molecule.charge, next() - 0.5);
    }
  }
  run.start();
  for (uint64_t round = 0; round < run.rounds; ++round)
    for (uint64_t i = 0; i < run.size; ++i) update(cells[i]);
  run.stop();
  for (uint64_t i = 0; i < run.size; ++i) check(cells[i]);
}

}  // namespace spw::bench
