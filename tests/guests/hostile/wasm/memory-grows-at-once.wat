;; Asks for 4 GiB in one go.
;; kind: health
;; expect: memory
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (if (i32.lt_s (memory.grow (i32.const 65535)) (i32.const 0))
        (then unreachable))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
