;; Wants the answer at an odd address.
;; kind: health
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (call $get-string (local.get $observed) (i32.const 600) (i32.const 0) (i32.const 701))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
