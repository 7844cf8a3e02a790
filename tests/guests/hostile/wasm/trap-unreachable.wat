;; Gives up.
;; kind: health
;; expect: trap
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      unreachable
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
