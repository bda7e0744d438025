#pragma once
// The benchmark of one library: verified, timed, verified again, size after size.

#include <cstddef>
#include <cstdio>

#include "bench/collective.h"
#include "bench/measure.h"

namespace bench {

/// Where a library finds its data. In place: both are the same.
struct Buffers {
  void* input;
  void* output;
};

/// `run(shape, buffers)` calls the library once, blocking, on every rank.
template <typename Run>
void measure_sizes(World& world, const Options& options, const Contestant& who, Run run) {
  const Op op = parse_op(options.op);
  const Dtype dtype = parse_dtype(options.dtype);
  for (const std::size_t size : op == Op::barrier ? std::vector<std::size_t>{0} : options.sizes) {
    const Shape shape = shape_of(op, dtype, world.ranks(), size);
    Buffer input(shape.input() * element_bytes(dtype));
    Buffer output(shape.in_place() ? 0 : shape.output() * element_bytes(dtype));
    const Buffers buffers{input.data(), shape.in_place() ? input.data() : output.data()};
    const auto verify = [&] {
      fill(shape, world.rank(), buffers.input);
      run(shape, buffers);
      check(shape, world.rank(), buffers.output);
    };
    const auto touch = [&] {
      input.clear();
      output.clear();
    };
    verify();
    touch();
    const Summary summary = measure(
        world, options, [&] { run(shape, buffers); }, touch);
    verify();
    world.barrier();
    if (world.rank() == 0) {
      print_line(options, who, world.ranks(), shape.bytes(), summary);
    }
  }
}

}  // namespace bench
