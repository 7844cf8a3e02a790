;; An eviction check that abstains. Tests put code in place of the two markers.
(component
  (import "bulkhead:policy/binding@0.1.0" (instance $inputs
    (export "binding" (type (sub resource)))
    (export "eviction-task" (type (sub resource)))))
  (import "bulkhead:policy/log@0.1.0" (instance $log
    (type $level' (enum "debug" "info" "warn"))
    (export "level" (type $level (eq $level')))
    (export "write" (func (param "level" $level) (param "message" string)))))
  (alias export $inputs "binding" (type $binding))
  (alias export $inputs "eviction-task" (type $task))

  (core module $heap
    (memory (export "memory") 1)
    (global $next (mut i32) (i32.const 32768))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get 3)))
      (local.get $at)))
  (core instance $heap (instantiate $heap))
  (core func $drop (canon resource.drop $binding))
  (core func $drop-task (canon resource.drop $task))
  (core func $write (canon lower (func $log "write") (memory (core memory $heap "memory"))))

  (core module $code
    (import "heap" "memory" (memory 1))
    (import "host" "drop" (func $drop (param i32)))
    (import "host" "drop-task" (func $drop-task (param i32)))
    (import "host" "write" (func $write (param i32 i32 i32)))
    ;; The metadata: name, version, and nothing else.
    (data (i32.const 64) "\80\00\00\00\04\00\00\00\84\00\00\00\05\00\00\00")
    (data (i32.const 128) "test1.2.3")
    ;; Every other reply is zero but for this one: ok(abstain).
    (data (i32.const 516) "\02")
    (func $recurse (param i32) (result i32)
      (i32.add (call $recurse (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
    (func (export "describe") (result i32) (i32.const 64))
    (func (export "configure") (param i32 i32) (result i32)
      ;; <configure>
      (i32.const 256))
    (func (export "check") (param $binding i32) (param $task i32) (result i32)
      (call $drop-task (local.get $task))
      ;; <check>
      (call $drop (local.get $binding))
      (i32.const 512)))
  (core instance $code (instantiate $code
    (with "heap" (instance $heap))
    (with "host" (instance
      (export "drop" (func $drop)) (export "drop-task" (func $drop-task)) (export "write" (func $write))))))

  (type $reason' (record (field "code" string) (field "message" string)))
  (export $reason "reason" (type $reason'))
  (type $error' (variant (case "unsupported") (case "invalid-config" string) (case "internal" string)))
  (export $error "policy-error" (type $error'))
  (type $kind' (record (field "api-version" string) (field "kind" string)))
  (export $kind "object-kind" (type $kind'))
  (type $metadata' (record
    (field "name" string) (field "version" string) (field "description" string) (field "object-kinds" (list $kind))
    (field "taint-keys" (list string)) (field "config-schema" string) (field "reusable" bool)
    (field "annotations" (list (tuple string string)))))
  (export $metadata "metadata" (type $metadata'))
  (type $hold' (record (field "reason" $reason) (field "recheck-after-s" (option u32))))
  (export $hold "hold-verdict" (type $hold'))
  (type $verdict' (variant (case "release" $reason) (case "hold" $hold) (case "abstain")))
  (export $verdict "verdict" (type $verdict'))

  (func $describe (result $metadata)
    (canon lift (core func $code "describe") (memory (core memory $heap "memory"))))
  (func $configure (param "config" string) (result (result (error $error)))
    (canon lift (core func $code "configure") (memory (core memory $heap "memory")) (realloc (core func $heap "realloc"))))
  (func $check (param "binding" (borrow $binding)) (param "task" (borrow $task))
    (result (result $verdict (error $error)))
    (canon lift (core func $code "check") (memory (core memory $heap "memory"))))
  (instance $plugin (export "describe" (func $describe)) (export "configure" (func $configure)))
  (export "bulkhead:policy/plugin@0.1.0" (instance $plugin))
  (instance $eviction (export "check" (func $check)))
  (export "bulkhead:policy/eviction@0.1.0" (instance $eviction)))
