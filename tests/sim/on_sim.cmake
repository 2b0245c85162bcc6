# Test programs that run again on the sim device (ctest label sim), and the cases that do not:
# what is about the host's own memory, threads or instruction sets says nothing of a device.
set(on_sim op_table autograd)

# Borrowed memory at odd addresses, failing allocators, thread counts of the CPU's kernels.
set(not_on_sim_op_table "*SameResultFromEveryAlignment*" "*FailingMemory*" "*SameBitsAtEveryThreadCount*")
# Other threads have the CPU as their default device; bytes and failures of the host's allocator; forks.
set(not_on_sim_autograd "Threads.*" "Checkpoint.KeepsLess" "Memory.FailingAtEveryAllocationOfAStep" "Fork.*")

foreach(suite IN LISTS on_sim)
  string(JOIN ":" without ${not_on_sim_${suite}})
  foreach(shard RANGE 3)
    add_test(NAME sim.${suite}.${shard} COMMAND test_${suite} --gtest_brief=1 "--gtest_filter=-${without}")
    set_tests_properties(sim.${suite}.${shard} PROPERTIES LABELS sim ENVIRONMENT
      "BAREGRAD_SIM=1;BAREGRAD_TEST_DEVICE=sim;GTEST_TOTAL_SHARDS=4;GTEST_SHARD_INDEX=${shard}")
  endforeach()
endforeach()

add_test(NAME docs.adding_a_backend COMMAND python3 -B ${PROJECT_SOURCE_DIR}/tests/tools/adding_a_backend.py
  --compiler ${CMAKE_CXX_COMPILER} --op-table $<TARGET_FILE:test_op_table>)
