// The scheduler of the fibers, which all emulated kernels share. See device.hpp.

#include <string.h>
#include <ucontext.h>

#include <vector>

struct Index { unsigned x = 0, y = 0, z = 0; };
Index threadIdx, blockIdx, blockDim, gridDim;

namespace emulation {


enum Wait { NOTHING, BLOCK, WARP, DONE };

struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    Wait waits = NOTHING;
    Index index;
};

static ucontext_t scheduler;
static std::vector<Fiber> fibers;
static void (*body)(void*, void**);
static void* body_kernel;
static void** body_arguments;
unsigned current;

void stop(int reason) {
    Fiber& mine = fibers[current];
    mine.waits = (Wait)reason;
    swapcontext(&mine.context, &scheduler);
}

static void start() {
    body(body_kernel, body_arguments);
    stop(DONE);
}

// Whether all live fibers from `first` to `last` wait for this; they are let go then.
static bool let_go(unsigned first, unsigned last, Wait reason) {
    bool any = false;
    for (unsigned i = first; i < last; ++i) {
        if (fibers[i].waits == DONE) continue;
        if (fibers[i].waits != reason) return false;
        any = true;
    }
    for (unsigned i = first; i < last; ++i) if (fibers[i].waits == reason) fibers[i].waits = NOTHING;
    return any;
}

static bool run_block() {
    const unsigned count = (unsigned)fibers.size();
    for (unsigned i = 0; i < count; ++i) {
        Fiber& fiber = fibers[i];
        fiber.stack.resize(1 << 16);
        fiber.waits = NOTHING;
        fiber.index.x = i % blockDim.x;
        fiber.index.y = i / blockDim.x % blockDim.y;
        fiber.index.z = i / blockDim.x / blockDim.y;
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = &scheduler;
        makecontext(&fiber.context, start, 0);
    }
    for (;;) {
        bool ran = false;
        for (current = 0; current < count; ++current) {
            if (fibers[current].waits != NOTHING) continue;
            ran = true;
            threadIdx = fibers[current].index;
            swapcontext(&scheduler, &fibers[current].context);
        }
        bool freed = false, done = true;
        for (unsigned i = 0; i < count; i += 32) freed |= let_go(i, i + 32 < count ? i + 32 : count, WARP);
        freed |= let_go(0, count, BLOCK);
        for (Fiber& fiber : fibers) done &= fiber.waits == DONE;
        if (done) return true;
        if (!ran && !freed) return false;
    }
}

// 0, or 3 when a block does not end.
int run(void (*call)(void*, void**), void* kernel, void** arguments, const unsigned* grid, const unsigned* block) {
    body = call;
    body_kernel = kernel;
    body_arguments = arguments;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    fibers.resize(block[0] * block[1] * block[2]);
    for (unsigned z = 0; z < grid[2]; ++z)
        for (unsigned y = 0; y < grid[1]; ++y)
            for (unsigned x = 0; x < grid[0]; ++x) {
                blockIdx = {x, y, z};
                if (!run_block()) return 3;
            }
    return 0;
}

}  // namespace emulation
