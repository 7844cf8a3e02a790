;; Writes to every page that it gets.
;; kind: health
;; budget: {"memoryBytes": 8388608}
;; expect: memory
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (local $page i32)
      (local.set $page (i32.const 1))
      (loop
        (if (i32.lt_s (memory.grow (i32.const 1)) (i32.const 0)) (then unreachable))
        (i32.store (i32.shl (local.get $page) (i32.const 16)) (i32.const -1))
        (local.set $page (i32.add (local.get $page) (i32.const 1)))
        (br 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
