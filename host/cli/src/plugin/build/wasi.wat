;; WASI preview 1 over the plugin contract, for toolchains whose runtime requires it (Go, C).
;;
;; Clocks stand at `now-ms` and advance only by waits, which end at once. The runtime reads them in the midst of
;; `cabi_realloc` too, where imports trap, so `begin_call` reads the time and the other functions repeat it. Random numbers follow from `seed`. Standard
;; output and error are lines of the log. There are no arguments, variables, files and connections; an exit is a trap.
;;
;; Lines are collected in bytes 512 to 1023 of the memory of the plugin. Go's linker places no data below 4 KiB; in C they
;; are the last of the stack, which grows down to 0.
(module
  (import "env" "memory" (memory 0))
  (import "bulkhead:policy/context@0.1.0" "now-ms" (func $now_ms (result i64)))
  (import "bulkhead:policy/context@0.1.0" "seed" (func $seed (result i64)))
  (import "bulkhead:policy/log@0.1.0" "write" (func $log (param i32 i32 i32)))

  (global $line_length (mut i32) (i32.const 0))
  (global $now_ns (mut i64) (i64.const 0))
  (global $random (mut i64) (i64.const 0))
  (global $is_seeded (mut i32) (i32.const 0))

  ;; Called by the SDK at the start of each call.
  (func (export "begin_call")
    (global.set $now_ns (i64.mul (call $now_ms) (i64.const 1000000))))

  ;; Writes the collected line at level warn.
  (func $flush
    (if (global.get $line_length)
      (then
        (call $log (i32.const 2) (i32.const 512) (global.get $line_length))
        (global.set $line_length (i32.const 0)))))

  (func $put (param $byte i32)
    (if (i32.eq (local.get $byte) (i32.const 10))
      (then (call $flush) (return)))
    (i32.store8 offset=512 (global.get $line_length) (local.get $byte))
    (global.set $line_length (i32.add (global.get $line_length) (i32.const 1)))
    ;; The host cuts lines at 512 characters.
    (if (i32.eq (global.get $line_length) (i32.const 512))
      (then (call $flush))))

  (func (export "fd_write") (param $fd i32) (param $vectors i32) (param $count i32) (param $written i32) (result i32)
    (local $at i32) (local $end i32) (local $sum i32)
    (if (i32.gt_u (i32.sub (local.get $fd) (i32.const 1)) (i32.const 1))
      (then (return (i32.const 8))))
    (block $done
      (loop $vector
        (br_if $done (i32.eqz (local.get $count)))
        (local.set $at (i32.load (local.get $vectors)))
        (local.set $end (i32.add (local.get $at) (i32.load offset=4 (local.get $vectors))))
        (local.set $sum (i32.add (local.get $sum) (i32.load offset=4 (local.get $vectors))))
        (block $written_out
          (loop $byte
            (br_if $written_out (i32.eq (local.get $at) (local.get $end)))
            (call $put (i32.load8_u (local.get $at)))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (br $byte)))
        (local.set $vectors (i32.add (local.get $vectors) (i32.const 8)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $vector)))
    (i32.store (local.get $written) (local.get $sum))
    (i32.const 0))

  (func (export "proc_exit") (param i32)
    (call $flush)
    unreachable)

  ;; The monotonic clock (1) is one nanosecond ahead: Go ends a program whose clock shows 0, as `describe` does.
  (func (export "clock_time_get") (param $clock i32) (param i64) (param $time i32) (result i32)
    (i64.store (local.get $time)
      (i64.add (global.get $now_ns) (i64.extend_i32_u (i32.eq (local.get $clock) (i32.const 1)))))
    (i32.const 0))
  (func (export "clock_res_get") (param i32) (param $resolution i32) (result i32)
    (i64.store (local.get $resolution) (i64.const 1000000))
    (i32.const 0))

  ;; Ends every wait at once. The longest clock subscription moves the clock.
  (func (export "poll_oneoff") (param $in i32) (param $out i32) (param $count i32) (param $stored i32) (result i32)
    (local $index i32) (local $timeout i64)
    (block $done
      (loop $next
        (br_if $done (i32.eq (local.get $index) (local.get $count)))
        ;; An event: user data, error, type; a file that is ready has no bytes.
        (i64.store (local.get $out) (i64.load (local.get $in)))
        (i64.store offset=8 (local.get $out) (i64.const 0))
        (i64.store offset=16 (local.get $out) (i64.const 0))
        (i64.store offset=24 (local.get $out) (i64.const 0))
        (i32.store8 offset=10 (local.get $out) (i32.load8_u offset=8 (local.get $in)))
        (if (i32.eqz (i32.load8_u offset=8 (local.get $in)))
          (then
            (local.set $timeout (i64.load offset=24 (local.get $in)))
            ;; Flag 1: the timeout is a time, not a duration.
            (if (i32.and (i32.load16_u offset=40 (local.get $in)) (i32.const 1))
              (then (local.set $timeout (i64.sub (local.get $timeout) (global.get $now_ns)))))
            (if (i64.gt_s (local.get $timeout) (i64.const 0))
              (then (global.set $now_ns (i64.add (global.get $now_ns) (local.get $timeout)))))))
        (local.set $in (i32.add (local.get $in) (i32.const 48)))
        (local.set $out (i32.add (local.get $out) (i32.const 32)))
        (local.set $index (i32.add (local.get $index) (i32.const 1)))
        (br $next)))
    (i32.store (local.get $stored) (local.get $count))
    (i32.const 0))

  ;; SplitMix64.
  (func $next_random (result i64)
    (local $z i64)
    (if (i32.eqz (global.get $is_seeded))
      (then
        (global.set $random (call $seed))
        (global.set $is_seeded (i32.const 1))))
    (global.set $random (i64.add (global.get $random) (i64.const 0x9e3779b97f4a7c15)))
    (local.set $z (global.get $random))
    (local.set $z
      (i64.mul (i64.xor (local.get $z) (i64.shr_u (local.get $z) (i64.const 30))) (i64.const 0xbf58476d1ce4e5b9)))
    (local.set $z
      (i64.mul (i64.xor (local.get $z) (i64.shr_u (local.get $z) (i64.const 27))) (i64.const 0x94d049bb133111eb)))
    (i64.xor (local.get $z) (i64.shr_u (local.get $z) (i64.const 31))))
  (func (export "random_get") (param $at i32) (param $length i32) (result i32)
    (local $end i32)
    (local.set $end (i32.add (local.get $at) (local.get $length)))
    (block $done
      (loop $byte
        (br_if $done (i32.eq (local.get $at) (local.get $end)))
        (i32.store8 (local.get $at) (i32.wrap_i64 (call $next_random)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $byte)))
    (i32.const 0))

  (func (export "sched_yield") (result i32) (i32.const 0))

  ;; No arguments, no variables.
  (func $none (param $count i32) (param $bytes i32) (result i32)
    (i32.store (local.get $count) (i32.const 0))
    (i32.store (local.get $bytes) (i32.const 0))
    (i32.const 0))
  (export "args_sizes_get" (func $none))
  (export "environ_sizes_get" (func $none))
  (func $nothing (param i32 i32) (result i32) (i32.const 0))
  (export "args_get" (func $nothing))
  (export "environ_get" (func $nothing))

  ;; Standard output and error are character devices that can be written; no other file is open (8 is EBADF).
  (func (export "fd_fdstat_get") (param $fd i32) (param $state i32) (result i32)
    (if (i32.gt_u (local.get $fd) (i32.const 2))
      (then (return (i32.const 8))))
    (i64.store (local.get $state) (i64.const 2))
    (i64.store offset=8 (local.get $state) (i64.const 0x40))
    (i64.store offset=16 (local.get $state) (i64.const 0))
    (i32.const 0))
  (func $closed (param i32) (result i32) (i32.const 8))
  (export "fd_close" (func $closed))
  (export "fd_sync" (func $closed))
  (export "fd_datasync" (func $closed))
  (func $closed_2 (param i32 i32) (result i32) (i32.const 8))
  (export "fd_prestat_get" (func $closed_2))
  (export "fd_fdstat_set_flags" (func $closed_2))
  (export "fd_filestat_get" (func $closed_2))
  (export "fd_tell" (func $closed_2))
  (func (export "fd_prestat_dir_name") (param i32 i32 i32) (result i32) (i32.const 8))
  (func (export "fd_read") (param i32 i32 i32 i32) (result i32) (i32.const 8))
  (func (export "fd_seek") (param i32 i64 i32 i32) (result i32) (i32.const 8))
  (func (export "fd_filestat_set_size") (param i32 i64) (result i32) (i32.const 8))
  (func (export "fd_filestat_set_times") (param i32 i64 i64 i32) (result i32) (i32.const 8))
  (func (export "fd_readdir") (param i32 i32 i32 i64 i32) (result i32) (i32.const 8))
  (func $closed_offset (param i32 i32 i32 i64 i32) (result i32) (i32.const 8))
  (export "fd_pread" (func $closed_offset))
  (export "fd_pwrite" (func $closed_offset))

  ;; There is no directory to look in (8 is EBADF).
  (func $no_path (param i32 i32 i32) (result i32) (i32.const 8))
  (export "path_create_directory" (func $no_path))
  (export "path_remove_directory" (func $no_path))
  (export "path_unlink_file" (func $no_path))
  (func (export "path_filestat_get") (param i32 i32 i32 i32 i32) (result i32) (i32.const 8))
  (func (export "path_filestat_set_times") (param i32 i32 i32 i32 i64 i64 i32) (result i32) (i32.const 8))
  (func (export "path_link") (param i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 8))
  (func (export "path_open") (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32) (i32.const 8))
  (func $no_path_6 (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 8))
  (export "path_readlink" (func $no_path_6))
  (export "path_rename" (func $no_path_6))
  (func (export "path_symlink") (param i32 i32 i32 i32 i32) (result i32) (i32.const 8))

  ;; No sockets (8 is EBADF).
  (func (export "sock_accept") (param i32 i32 i32) (result i32) (i32.const 8))
  (func (export "sock_recv") (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 8))
  (func (export "sock_send") (param i32 i32 i32 i32 i32) (result i32) (i32.const 8))
  (export "sock_shutdown" (func $closed_2))
)
